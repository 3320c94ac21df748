//! The facts that every form of a reply states about a book.

use posthaste_bookshop::Book;

/// Number of facts about a book.
pub(super) const FACTS: usize = 10;

/// The facts of a book: name and value.
pub(super) fn values(book: &Book) -> [(&'static str, String); FACTS] {
    let Book {
        isbn,
        title,
        author,
        publisher,
        subject,
        published,
        pages,
        price,
        stock,
        description,
    } = book;
    [
        ("isbn", isbn.clone()),
        ("title", title.clone()),
        ("author", author.clone()),
        ("publisher", publisher.clone()),
        ("subject", (*subject).to_owned()),
        ("published", published.clone()),
        ("pages", pages.to_string()),
        ("price", price.clone()),
        ("stock", stock.to_string()),
        ("description", description.clone()),
    ]
}
