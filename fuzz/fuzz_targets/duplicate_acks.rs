//! Fuzzes what passes the duplicate-ACK agent; what must hold is in `posthaste_fuzz::duplicate_acks`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(duplicate_acks);
