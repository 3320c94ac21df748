//! Integration tests of the crate's public interface.

mod documents;
mod header;
mod index;
mod made;
mod matching;
mod money;
mod ranking;
mod selection;
