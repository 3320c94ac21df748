//! Transactions in virtual time: compared with arithmetic, and checked for repeatability and conservation.

mod arithmetic;
mod copies;
mod jobs;
mod published;
mod repetition;
mod support;
mod traces;
mod wire;
mod worlds;
