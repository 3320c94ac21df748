//! The protocol over a real server. `cargo xtask test --only nats` names the program in `POSTHASTE_NATS_SERVER`.

mod clocks;
mod connecting;
mod credentials;
mod deaths;
mod load;
mod load_support;
mod notes;
mod permissions;
mod pool;
mod protocols;
mod runs;
mod server;
mod shares;
mod storage;
mod studies;
mod sweep;
