//! Fuzzes messages about accounts; what must hold is in `posthaste_fuzz::accounts`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(accounts);
