//! Fuzzes the fields by which clients say what they want; what must hold is in `posthaste_fuzz::wishes`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(wishes);
