//! Fuzzes streams of events in replies; what must hold is in `posthaste_fuzz::event_stream`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(event_stream);
