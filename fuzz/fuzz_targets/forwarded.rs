//! Fuzzes the fields with the senders of a forwarded request; what must hold is in `posthaste_fuzz::forwarded`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(forwarded);
