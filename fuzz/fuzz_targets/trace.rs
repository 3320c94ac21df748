//! Fuzzes what a trace says of packets; what must hold is in `posthaste_fuzz::trace`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(trace);
