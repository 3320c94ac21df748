//! Fuzzes HTTP replies in pieces; what must hold is in `posthaste_fuzz::http_reply`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(http_reply);
