//! Fuzzes the frames of HTTP/2 clients; what must hold is in `posthaste_fuzz::http2_frames`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(http2_frames);
