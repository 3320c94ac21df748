//! Transactions in virtual time: held against arithmetic, repetition and conservation.

mod arithmetic;
mod copies;
mod published;
mod repetition;
mod support;
mod traces;
mod worlds;
