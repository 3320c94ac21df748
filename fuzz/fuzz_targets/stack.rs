//! Fuzzes a TCP between a link and a host; what must hold is in `posthaste_fuzz::stack`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(stack);
