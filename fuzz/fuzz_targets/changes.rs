//! Fuzzes streams of changes; what must hold is in `posthaste_fuzz::changes`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(changes);
