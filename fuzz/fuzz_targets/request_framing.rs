//! Fuzzes the framing of requests; what must hold is in `posthaste_fuzz::request_framing`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(request_framing);
