//! The page form: minimal HTML with the same information as the SOAP reply.

use crate::content::{Opinion, ReplyContent};

/// Renders the content of a reply.
pub(crate) fn reply(content: &ReplyContent<'_>) -> String {
    let mut out = String::with_capacity(2048);
    match content {
        ReplyContent::Greeting { isbn } => {
            head("Hello", &mut out);
            item("p", &[crate::soap::GREETING, isbn], &mut out);
        }
        ReplyContent::Books { books, .. } => {
            head(&books[0].0.title, &mut out);
            for (book, opinions) in books {
                item("h1", &[&book.title], &mut out);
                item("p", &["by ", &book.author], &mut out);
                item("p", &[&book.description], &mut out);
                out.push_str("<table>\n");
                row("ISBN", &book.isbn, &mut out);
                row("Publisher", &book.publisher, &mut out);
                row("Subject", book.subject, &mut out);
                row("Published", &book.published, &mut out);
                row("Pages", &book.pages.to_string(), &mut out);
                row("Price (EUR)", &book.price, &mut out);
                row("In stock", &book.stock.to_string(), &mut out);
                out.push_str("</table>\n");
                for Opinion { review, text } in opinions {
                    let stars = review.rating.to_string();
                    item(
                        "h2",
                        &[&review.reviewer, ", ", &review.date, ", ", &stars, " of 5"],
                        &mut out,
                    );
                    item("p", &[text], &mut out);
                }
            }
        }
    }
    out.push_str("</body></html>\n");
    out
}

/// Renders an error.
pub(crate) fn problem(title: &str, message: &str) -> String {
    let mut out = String::with_capacity(512);
    head(title, &mut out);
    item("h1", &[title], &mut out);
    item("p", &[message], &mut out);
    out.push_str("</body></html>\n");
    out
}

fn head(title: &str, out: &mut String) {
    out.push_str("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
    posthaste_soap::write::text(title, out);
    out.push_str("</title></head><body>\n");
}

fn row(name: &str, value: &str, out: &mut String) {
    out.push_str("<tr><td>");
    out.push_str(name);
    out.push_str("</td><td>");
    posthaste_soap::write::text(value, out);
    out.push_str("</td></tr>\n");
}

fn item(name: &str, parts: &[&str], out: &mut String) {
    out.push('<');
    out.push_str(name);
    out.push('>');
    for part in parts {
        posthaste_soap::write::text(part, out);
    }
    out.push_str("</");
    out.push_str(name);
    out.push_str(">\n");
}
