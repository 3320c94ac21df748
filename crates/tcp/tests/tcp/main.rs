//! Endpoints in virtual time, held against the standards and what stacks are known to do.

mod delivery;
mod freebsd;
mod hell;
mod mixture;
mod pair;
mod play;
mod remedies;
mod reuse;
mod scenarios;
mod script;
mod storm;
mod worlds;
