//! The command as seen by a user: output, exit codes, and all kinds of failures.

mod bad_input;
mod bad_luck;
mod command;
mod compare;
mod demo;
mod documented;
mod drain;
mod early_answers;
mod endless_replies;
mod few_descriptors;
mod full_disk;
mod grpc;
mod installed;
mod net;
mod offers;
mod outcomes;
mod pattern;
mod prices;
mod retries;
mod simulate;
mod simulate_quic;
mod trust;
