//! Parts of `xtask` and of the tests against peers: the checkout, processes, tools, and results of tests.
//!
//! A library of its own, because `cargo xtask` must not compile the tests against peers, and they need nothing else of
//! `xtask`.

pub mod binaries;
pub mod checkout;
pub mod error;
pub mod output;
pub mod peers;
pub mod process;
pub mod tally;
pub mod tools;
pub mod waiting;
