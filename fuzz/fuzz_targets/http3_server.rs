//! Fuzzes the streams of HTTP/3 clients; what must hold is in `posthaste_fuzz::http3_server`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(http3_server);
