//! Fuzzes the streams of HTTP/3 servers; what must hold is in `posthaste_fuzz::http3_client`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(http3_client);
