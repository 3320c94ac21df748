//! Fuzzes connections to the bookshop; what must hold is in `posthaste_fuzz::bookshop`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(bookshop);
