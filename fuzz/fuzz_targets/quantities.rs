//! Fuzzes what people type: quantities, assertions, traces, tables; what must hold is in `posthaste_fuzz::quantities`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(quantities);
