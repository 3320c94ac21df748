//! The selection of the books and reviews of a reply, so that its SOAP Body has the size of the paper.

use crate::catalogue::{Catalogue, Review, Size};
use crate::content::{Opinion, ReplyContent};
use crate::soap;
use crate::text::cut;

/// Minimum size of a review's text in bytes. A review with less space is omitted.
const SHORTEST_TEXT: usize = 24;

/// Selects the content of the reply of `size` about book `number`.
pub(crate) fn select(catalogue: &Catalogue, number: usize, size: Size) -> ReplyContent<'_> {
    let book = |n: usize| &catalogue.books()[n % catalogue.books().len()];
    let Some(pool) = catalogue.reviews(size) else {
        return match size {
            Size::Hello => ReplyContent::Greeting {
                isbn: &book(number).isbn,
            },
            _ => ReplyContent::Books {
                size,
                books: vec![(book(number), Vec::new())],
            },
        };
    };
    let mut left = size.body_bytes().saturating_sub(soap::frame_bytes(size));
    let mut next = number * 7;
    let count = size.books();
    let mut books = Vec::with_capacity(count);
    for n in 0..count {
        let book = book(number + n);
        let book_bytes = soap::book_bytes(book);
        // An equal share of the remaining bytes for this book and each after it.
        let share = (left / (count - n)).saturating_sub(book_bytes);
        let (opinions, used) = select_reviews(pool, &mut next, share);
        left = left.saturating_sub(book_bytes + used);
        books.push((book, opinions));
    }
    ReplyContent::Books { size, books }
}

/// Selects reviews from `next` on until less than a review of `share` bytes is left. Returns them with their size.
fn select_reviews<'a>(
    pool: &'a [Review],
    next: &mut usize,
    share: usize,
) -> (Vec<Opinion<'a>>, usize) {
    let mut opinions = Vec::with_capacity(32);
    let mut used = 0;
    loop {
        let review = &pool[*next % pool.len()];
        let (frame, left) = (soap::review_bytes(review), share - used);
        if left < frame + SHORTEST_TEXT {
            return (opinions, used);
        }
        let text = if frame + review.text.len() > left {
            cut(&review.text, left - frame)
        } else {
            &review.text
        };
        opinions.push(Opinion { review, text });
        used += frame + text.len();
        debug_assert!(used <= share, "reviews of {used} bytes exceed {share}");
        *next += 1;
    }
}
