//! Fuzzes the frames of HTTP/2 servers; what must hold is in `posthaste_fuzz::http2_client`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(http2_client);
