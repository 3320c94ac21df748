//! Fuzzes distributions and totals in messages; what must hold is in `posthaste_fuzz::statistics`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(statistics);
