//! Fuzzes the scan of a SOAP header as it streams by; what must hold is in `posthaste_fuzz::soap_head`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(soap_head);
