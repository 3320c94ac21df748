//! Fuzzes doubtful requests, mixed; what must hold is in `posthaste_fuzz::doubtful`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(doubtful);
