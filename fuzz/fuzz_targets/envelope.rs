//! Fuzzes envelopes as a service reads them; what must hold is in `posthaste_fuzz::envelope`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(envelope);
