//! Fuzzes bodies with a content coding; what must hold is in `posthaste_fuzz::decoding`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(decoding);
