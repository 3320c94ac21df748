//! Fuzzes frames off a device; what must hold is in `posthaste_fuzz::frames`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(frames);
