//! Fuzzes a TCP endpoint with segments from hell; what must hold is in `posthaste_fuzz::endpoint`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(endpoint);
