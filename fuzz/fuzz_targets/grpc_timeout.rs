//! Fuzzes the value of a grpc-timeout field; what must hold is in `posthaste_fuzz::grpc_timeout`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(grpc_timeout);
