//! Fuzzes the field sections of HTTP/3 servers; what must hold is in `posthaste_fuzz::qpack`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(qpack);
