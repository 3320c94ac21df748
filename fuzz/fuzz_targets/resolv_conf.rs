//! Fuzzes a machine's resolv.conf; what must hold is in `posthaste_fuzz::resolv_conf`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(resolv_conf);
