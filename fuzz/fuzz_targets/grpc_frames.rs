//! Fuzzes the messages of a gRPC body; what must hold is in `posthaste_fuzz::grpc_frames`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(grpc_frames);
