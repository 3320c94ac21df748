//! Transactions in virtual time: held against arithmetic, repetition and conservation.

mod arithmetic;
mod published;
mod repetition;
mod support;
mod traces;
mod worlds;
