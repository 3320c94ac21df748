//! The JSON form: the same information, and problems according to RFC 9457.

use serde::Serialize;

use crate::catalogue::Book;
use crate::content::{Opinion, ReplyContent};

#[derive(Serialize)]
struct BookJson<'a> {
    isbn: &'a str,
    title: &'a str,
    author: &'a str,
    publisher: &'a str,
    subject: &'a str,
    published: &'a str,
    pages: u32,
    /// A string, because a price is exact and a JSON number need not be.
    price: &'a str,
    stock: u32,
    description: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reviews: Vec<ReviewJson<'a>>,
}

#[derive(Serialize)]
struct ReviewJson<'a> {
    reviewer: &'a str,
    date: &'a str,
    rating: u8,
    text: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ReplyJson<'a> {
    Greeting { text: &'a str, isbn: &'a str },
    Books { books: Vec<BookJson<'a>> },
}

#[derive(Serialize)]
struct ProblemJson<'a> {
    r#type: &'a str,
    title: &'a str,
    status: u16,
    detail: &'a str,
}

/// Serialises the content of a reply.
pub(crate) fn reply(content: &ReplyContent<'_>) -> String {
    let reply = match content {
        ReplyContent::Greeting { isbn } => ReplyJson::Greeting {
            text: crate::soap::GREETING.trim_end(),
            isbn,
        },
        ReplyContent::Books { books, .. } => ReplyJson::Books {
            books: books
                .iter()
                .map(|(book, opinions)| book_json(book, opinions))
                .collect(),
        },
    };
    to_text(&reply)
}

/// Serialises problem details (RFC 9457, section 3). `kind` is the end of the type.
pub(crate) fn problem(kind: &str, title: &str, status: u16, detail: &str) -> String {
    let kind = format!("urn:posthaste:bookshop:{kind}");
    to_text(&ProblemJson {
        r#type: &kind,
        title,
        status,
        detail,
    })
}

fn to_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, numbers and lists of them serialise")
}

fn book_json<'a>(book: &'a Book, opinions: &[Opinion<'a>]) -> BookJson<'a> {
    let review = |o: &Opinion<'a>| ReviewJson {
        reviewer: &o.review.reviewer,
        date: &o.review.date,
        rating: o.review.rating,
        text: o.text,
    };
    BookJson {
        isbn: &book.isbn,
        title: &book.title,
        author: &book.author,
        publisher: &book.publisher,
        subject: book.subject,
        published: &book.published,
        pages: book.pages,
        price: &book.price,
        stock: book.stock,
        description: &book.description,
        reviews: opinions.iter().map(review).collect(),
    }
}
