//! Fuzzes IP packets as TCP segments; what must hold is in `posthaste_fuzz::packets`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(packets);
