//! Fuzzes plans of runs in messages; what must hold is in `posthaste_fuzz::plan`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(plan);
