//! Fuzzes replies as a load generator looks at them; what must hold is in `posthaste_fuzz::reply_inspect`.

#![cfg_attr(fuzzing, no_main)]

posthaste_fuzz::target!(reply_inspect);
