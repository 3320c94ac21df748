//! Fuzzes replies of UDDI registries; what must hold is in `posthaste_fuzz::registry_reply`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(registry_reply);
