//! Fuzzes patterns and mahimahi traces; what must hold is in `posthaste_fuzz::pattern`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(pattern);
