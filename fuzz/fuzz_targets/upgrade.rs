//! Fuzzes requests to switch protocols; what must hold is in `posthaste_fuzz::upgrade`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(upgrade);
