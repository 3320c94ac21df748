//! Fuzzes the names of certificates; what must hold is in `posthaste_fuzz::certificate_names`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(certificate_names);
