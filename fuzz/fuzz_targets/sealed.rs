//! Fuzzes sealed files; what must hold is in `posthaste_fuzz::sealed`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(sealed);
