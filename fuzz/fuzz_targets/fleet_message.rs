//! Fuzzes messages of a fleet; what must hold is in `posthaste_fuzz::fleet_message`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(fleet_message);
