//! The SOAP form: replies, faults and the service description.
//!
//! A lite reply is a data set, as in the overload paper: an inline schema that documents every column, then the row.
//! Heavy replies are plain elements.

use posthaste_compression::{COMPRESSION, Wish};
use posthaste_soap::EXTENSION_NAMESPACE as WSQOS;
use posthaste_soap::wsdl::{Element, Extension, Kind, Offered, Record, Service};
use posthaste_soap::{Code, Detail, Fault, Version, write};

use crate::catalogue::{Book, LookupError, Review, Size};
use crate::content::{Opinion, ReplyContent};

/// The namespace of all elements of the shop.
pub const NAMESPACE: &str = "urn:posthaste:bookshop";

/// A greeting in eight languages. Like the paper's hello, it does not shrink by compression.
pub(crate) const GREETING: &str = "Сәлем 你好 Γειά 안녕 您早 ສະບາຍດີ ନମସ୍କାର नमस्ते ";

/// The schema of a data set, before its row.
const SCHEMA: &str = include_str!("dataset.xsd");

/// Builds the complete envelope of a reply.
pub(crate) fn reply(content: &ReplyContent<'_>, size: Size, version: Version) -> String {
    let mut out = String::with_capacity(size.body_bytes() + 320);
    write::open(version, &mut out);
    open(size, &mut out);
    match content {
        ReplyContent::Greeting { isbn } => {
            out.push_str("<text>");
            out.push_str(GREETING);
            out.push_str(isbn);
            out.push_str("</text>");
        }
        ReplyContent::Books { books, .. } => {
            if size == Size::Lite {
                out.push_str(SCHEMA);
            }
            for (book, opinions) in books {
                write_book(book, opinions, &mut out);
            }
        }
    }
    out.push_str("</");
    out.push_str(size.operation());
    out.push_str("Response>");
    write::close(&mut out);
    out
}

/// Builds the fault for a failed look-up.
pub(crate) fn fault(error: &LookupError) -> Fault {
    let (problem, isbn) = match error {
        LookupError::Invalid { isbn, .. } => ("invalid-isbn", isbn),
        LookupError::Unknown(isbn) => ("unknown-isbn", isbn),
    };
    Fault {
        code: Code::Client,
        reason: error.to_string(),
        detail: Some(Detail {
            namespace: NAMESPACE,
            name: "BookFault",
            fields: vec![("problem", problem.to_owned()), ("isbn", isbn.clone())],
        }),
    }
}

/// Bytes of a Body around its books.
pub(crate) fn frame_bytes(size: Size) -> usize {
    let mut out = "<soap:Body></soap:Body></Response>".to_owned();
    open(size, &mut out);
    out.len() + size.operation().len()
}

/// Bytes of a book without reviews.
pub(crate) fn book_bytes(book: &Book) -> usize {
    let mut out = String::with_capacity(1024);
    write_book(book, &[], &mut out);
    out.len()
}

/// Bytes of a review without its text.
pub(crate) fn review_bytes(review: &Review) -> usize {
    REVIEW_MARKS + review.reviewer.len() + review.date.len()
}

const REVIEW_MARKS: usize =
    "<Review><reviewer></reviewer><date></date><rating>5</rating><text></text></Review>".len();

fn open(size: Size, out: &mut String) {
    out.push('<');
    out.push_str(size.operation());
    out.push_str("Response xmlns=\"");
    out.push_str(NAMESPACE);
    out.push_str("\">");
}

fn write_book(book: &Book, opinions: &[Opinion<'_>], out: &mut String) {
    out.push_str("<Book>");
    write::element("isbn", &book.isbn, out);
    write::element("title", &book.title, out);
    write::element("author", &book.author, out);
    write::element("publisher", &book.publisher, out);
    write::element("subject", book.subject, out);
    write::element("published", &book.published, out);
    write::element("pages", itoa(book.pages, &mut [0; 10]), out);
    write::element("price", &book.price, out);
    write::element("stock", itoa(book.stock, &mut [0; 10]), out);
    write::element("description", &book.description, out);
    for Opinion { review, text } in opinions {
        out.push_str("<Review>");
        write::element("reviewer", &review.reviewer, out);
        write::element("date", &review.date, out);
        write::element("rating", itoa(u32::from(review.rating), &mut [0; 10]), out);
        write::element("text", text, out);
        out.push_str("</Review>");
    }
    out.push_str("</Book>");
}

/// Formats a number as decimal text without an allocation.
fn itoa(mut number: u32, buffer: &mut [u8; 10]) -> &str {
    let mut at = buffer.len();
    loop {
        at -= 1;
        buffer[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return std::str::from_utf8(&buffer[at..]).expect("digits are ASCII");
        }
    }
}

/// The service description at `/soap?wsdl`.
pub(crate) fn service() -> Service {
    let isbn = || Element::simple("isbn", "string", "ISBN-10; hyphens are allowed.");
    let books = |many| Element {
        name: "Book",
        kind: Kind::Record("Book"),
        optional: false,
        many,
        documentation: "",
    };
    let schema = Element {
        name: "",
        kind: Kind::Any("http://www.w3.org/2001/XMLSchema"),
        optional: false,
        many: false,
        documentation: "",
    };
    let operation = |size: Size| Offered {
        name: size.operation(),
        documentation: match size {
            Size::Hello => "A greeting in several languages.",
            Size::Lite => "One book as a data set: a schema of the row, then the row.",
            Size::Heavy1 => "One book with reviews, about 16 kB.",
            Size::Heavy2 => "The book and the next in the list, with reviews, about 28 kB.",
            Size::Heavy3 => "The book and the next two, with reviews, about 36 kB.",
            Size::Heavy5 => "The book and the next four, with reviews, about 50 kB.",
        },
        input: vec![isbn()],
        output: match size {
            Size::Hello => vec![Element::simple("text", "string", "")],
            Size::Lite => vec![schema.clone(), books(false)],
            _ => vec![books(true)],
        },
        extensions: vec![Extension {
            namespace: WSQOS.to_owned(),
            name: COMPRESSION.to_owned(),
            text: compression(size).name().to_owned(),
        }],
    };
    Service {
        name: "Bookshop",
        namespace: NAMESPACE,
        documentation: "An inventory of books by ISBN, in replies of six sizes.",
        operations: Size::ALL.map(operation).to_vec(),
        records: records(),
        fault: Some("BookFault"),
    }
}

/// The default for calls without a preference. A greeting grows by compression.
const fn compression(size: Size) -> Wish {
    match size {
        Size::Hello => Wish::Never,
        _ => Wish::IfPossible,
    }
}

fn records() -> Vec<Record> {
    let review = Element {
        name: "Review",
        kind: Kind::Record("Review"),
        optional: true,
        many: true,
        documentation: "",
    };
    vec![
        Record {
            name: "Book",
            documentation: "A book in the inventory.",
            elements: vec![
                Element::simple("isbn", "string", "ISBN-10 without hyphens."),
                Element::simple("title", "string", ""),
                Element::simple("author", "string", "One name, or two joined by and."),
                Element::simple("publisher", "string", ""),
                Element::simple("subject", "string", ""),
                Element::simple("published", "date", ""),
                Element::simple("pages", "int", ""),
                Element::simple("price", "decimal", "Euros."),
                Element::simple("stock", "int", "Copies ready to be sent."),
                Element::simple("description", "string", ""),
                review,
            ],
        },
        Record {
            name: "Review",
            documentation: "What a reader thought of it.",
            elements: vec![
                Element::simple("reviewer", "string", ""),
                Element::simple("date", "date", ""),
                Element::simple("rating", "int", "One to five stars."),
                Element::simple("text", "string", ""),
            ],
        },
        Record {
            name: "BookFault",
            documentation: "Why there is no answer.",
            elements: vec![
                Element::simple("problem", "string", "invalid-isbn or unknown-isbn."),
                Element::simple("isbn", "string", "The requested book."),
            ],
        },
    ]
}
