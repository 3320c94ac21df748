//! Messages of `bookshop.v1`. `proto/bookshop/v1/bookshop.proto` describes them.

use crate::catalogue::{Book, Size};
use crate::content::{Opinion, ReplyContent};
use crate::soap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum SizeMessage {
    Unspecified = 0,
    Hello = 1,
    Lite = 2,
    Heavy1 = 3,
    Heavy2 = 4,
    Heavy3 = 5,
    Heavy5 = 6,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct GetBookRequest {
    #[prost(string, tag = "1")]
    pub(crate) isbn: String,
    #[prost(enumeration = "SizeMessage", tag = "2")]
    pub(crate) size: i32,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct GetBookReply {
    #[prost(string, tag = "1")]
    pub(crate) greeting: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) books: Vec<BookMessage>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct BookMessage {
    #[prost(string, tag = "1")]
    pub(crate) isbn: String,
    #[prost(string, tag = "2")]
    pub(crate) title: String,
    #[prost(string, tag = "3")]
    pub(crate) author: String,
    #[prost(string, tag = "4")]
    pub(crate) publisher: String,
    #[prost(string, tag = "5")]
    pub(crate) subject: String,
    #[prost(string, tag = "6")]
    pub(crate) published: String,
    #[prost(uint32, tag = "7")]
    pub(crate) pages: u32,
    #[prost(string, tag = "8")]
    pub(crate) price: String,
    #[prost(uint32, tag = "9")]
    pub(crate) stock: u32,
    #[prost(string, tag = "10")]
    pub(crate) description: String,
    #[prost(message, repeated, tag = "11")]
    pub(crate) reviews: Vec<ReviewMessage>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ReviewMessage {
    #[prost(string, tag = "1")]
    pub(crate) reviewer: String,
    #[prost(string, tag = "2")]
    pub(crate) date: String,
    #[prost(uint32, tag = "3")]
    pub(crate) rating: u32,
    #[prost(string, tag = "4")]
    pub(crate) text: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ListBooksRequest {
    #[prost(string, tag = "1")]
    pub(crate) isbn: String,
    #[prost(enumeration = "SizeMessage", tag = "2")]
    pub(crate) size: i32,
    #[prost(uint32, tag = "3")]
    pub(crate) count: u32,
    #[prost(string, tag = "4")]
    pub(crate) gap: String,
    #[prost(string, tag = "5")]
    pub(crate) first: String,
    #[prost(uint64, tag = "6")]
    pub(crate) seed: u64,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct ListBooksReply {
    #[prost(uint32, tag = "1")]
    pub(crate) number: u32,
    #[prost(uint64, tag = "2")]
    pub(crate) sent_ns: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) due_ns: u64,
    #[prost(message, optional, tag = "4")]
    pub(crate) content: Option<GetBookReply>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct OrderLine {
    #[prost(string, tag = "1")]
    pub(crate) isbn: String,
    #[prost(uint32, tag = "2")]
    pub(crate) copies: u32,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct OrderTotal {
    #[prost(uint32, tag = "1")]
    pub(crate) lines: u32,
    #[prost(uint64, tag = "2")]
    pub(crate) copies: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) total_cents: u64,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct LineQuote {
    #[prost(uint32, tag = "1")]
    pub(crate) number: u32,
    #[prost(uint64, tag = "2")]
    pub(crate) sent_ns: u64,
    #[prost(string, tag = "3")]
    pub(crate) isbn: String,
    #[prost(uint64, tag = "4")]
    pub(crate) line_cents: u64,
    #[prost(uint64, tag = "5")]
    pub(crate) total_cents: u64,
}

/// The size with this number. `None` for a number that the enumeration does not have.
pub(crate) fn size(number: i32) -> Option<Size> {
    Some(match SizeMessage::try_from(number).ok()? {
        SizeMessage::Hello => Size::Hello,
        SizeMessage::Unspecified | SizeMessage::Lite => Size::Lite,
        SizeMessage::Heavy1 => Size::Heavy1,
        SizeMessage::Heavy2 => Size::Heavy2,
        SizeMessage::Heavy3 => Size::Heavy3,
        SizeMessage::Heavy5 => Size::Heavy5,
    })
}

/// The content of a reply as a message.
pub(crate) fn reply(content: &ReplyContent<'_>) -> GetBookReply {
    match content {
        ReplyContent::Greeting { .. } => GetBookReply {
            greeting: soap::GREETING.trim_end().to_owned(),
            books: Vec::new(),
        },
        ReplyContent::Books { books, .. } => GetBookReply {
            greeting: String::new(),
            books: books
                .iter()
                .map(|(book, opinions)| book_message(book, opinions))
                .collect(),
        },
    }
}

fn book_message(book: &Book, opinions: &[Opinion<'_>]) -> BookMessage {
    let review = |opinion: &Opinion<'_>| ReviewMessage {
        reviewer: opinion.review.reviewer.clone(),
        date: opinion.review.date.clone(),
        rating: u32::from(opinion.review.rating),
        text: opinion.text.to_owned(),
    };
    BookMessage {
        isbn: book.isbn.clone(),
        title: book.title.clone(),
        author: book.author.clone(),
        publisher: book.publisher.clone(),
        subject: book.subject.to_owned(),
        published: book.published.clone(),
        pages: book.pages,
        price: book.price.clone(),
        stock: book.stock,
        description: book.description.clone(),
        reviews: opinions.iter().map(review).collect(),
    }
}
