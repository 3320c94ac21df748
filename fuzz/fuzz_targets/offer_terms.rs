//! Fuzzes the fields with the terms of a request; what must hold is in `posthaste_fuzz::offer_terms`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(offer_terms);
