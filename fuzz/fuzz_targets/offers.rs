//! Fuzzes WS-QoS documents; what must hold is in `posthaste_fuzz::offers`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(offers);
