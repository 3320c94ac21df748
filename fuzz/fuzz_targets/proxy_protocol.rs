//! Fuzzes headers of the PROXY protocol; what must hold is in `posthaste_fuzz::proxy_protocol`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(proxy_protocol);
