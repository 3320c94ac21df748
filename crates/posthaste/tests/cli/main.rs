//! The command as a user meets it: output, exit codes, and everything that can go wrong.

mod bad_input;
mod bad_luck;
mod command;
mod compare;
mod demo;
mod documented;
mod early_answers;
mod endless_replies;
mod few_descriptors;
mod full_disk;
mod installed;
mod net;
mod offers;
mod outcomes;
mod pattern;
mod prices;
mod simulate;
mod trust;
