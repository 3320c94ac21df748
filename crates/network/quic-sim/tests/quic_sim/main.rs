//! Tests of the QUIC simulator: one binary, one module for each subject.

mod arithmetic;
mod late_handshake;
mod positions;
mod repetition;
mod support;
mod traces;
mod worlds;
