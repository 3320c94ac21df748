//! The content of replies. The three forms carry the same content; each form only defines the syntax.

use crate::catalogue::{Book, Review, Size};

/// A review as part of an answer, with its text possibly shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opinion<'a> {
    pub(crate) review: &'a Review,
    pub(crate) text: &'a str,
}

/// The content of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReplyContent<'a> {
    Greeting {
        isbn: &'a str,
    },
    Books {
        size: Size,
        books: Vec<(&'a Book, Vec<Opinion<'a>>)>,
    },
}
