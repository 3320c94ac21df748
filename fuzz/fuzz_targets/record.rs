//! Fuzzes records of what was pushed into links; what must hold is in `posthaste_fuzz::record`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(record);
