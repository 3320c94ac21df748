//! Fuzzes service descriptions; what must hold is in `posthaste_fuzz::wsdl`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(wsdl);
