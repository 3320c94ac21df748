//! Endpoints in virtual time, compared with the standards and with the known behaviour of stacks.

mod delivery;
mod freebsd;
mod hell;
mod mixture;
mod packetdrill;
mod pair;
mod play;
mod remedies;
mod reuse;
mod scenarios;
mod script;
mod storm;
mod worlds;
