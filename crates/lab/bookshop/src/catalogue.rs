//! The books, generated from a seed, and the sizes of replies.
//!
//! The sizes are those of `wsqos/table-4`.

use std::collections::HashMap;
use std::str::FromStr;

use posthaste_units::Seed;
use rand::RngExt as _;
use thiserror::Error;

use crate::isbn::{self, IsbnError};
use crate::text::Prose;

/// Bytes of information in a lite reply. With the ten bytes of the request, this is the papers' 589.
const CONTENT: usize = 579;

/// Number of reviews in the pool of each heavy size.
const POOL: usize = 320;

/// The size of a reply (`wsqos/table-4`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// A greeting.
    Hello,
    /// One book as a data set.
    Lite,
    /// One book with reviews.
    Heavy1,
    /// Two books with reviews.
    Heavy2,
    /// Three books with reviews.
    Heavy3,
    /// Five books with reviews.
    Heavy5,
}

/// A book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Book {
    /// ISBN-10 without hyphens.
    pub isbn: String,
    /// Title.
    pub title: String,
    /// One or two authors.
    pub author: String,
    /// Publisher.
    pub publisher: String,
    /// Subject.
    pub subject: &'static str,
    /// Day of publication, ISO 8601.
    pub published: String,
    /// Pages.
    pub pages: u32,
    /// Price in euros with two decimals.
    pub price: String,
    /// Copies in stock.
    pub stock: u32,
    /// Description of the content.
    pub description: String,
}

/// A reader's review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// Name of the reviewer.
    pub reviewer: String,
    /// Date, ISO 8601.
    pub date: String,
    /// One to five stars.
    pub rating: u8,
    /// Text of the review.
    pub text: String,
}

/// Reasons why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LookupError {
    /// The text is not an ISBN-10.
    #[error("{isbn:?} is not an ISBN-10: {reason}")]
    Invalid {
        /// The requested ISBN, shortened.
        isbn: String,
        /// The reason.
        reason: IsbnError,
    },
    /// A valid ISBN that is not in the catalogue.
    #[error("there is no book with the ISBN {0}: GET /isbns.csv lists those there are")]
    Unknown(String),
}

/// All books.
#[derive(Debug)]
pub struct Catalogue {
    books: Vec<Book>,
    reviews: HashMap<Size, Vec<Review>>,
    index: HashMap<String, usize>,
}

impl Size {
    /// Every size, smallest first.
    pub const ALL: [Self; 6] = [
        Self::Hello,
        Self::Lite,
        Self::Heavy1,
        Self::Heavy2,
        Self::Heavy3,
        Self::Heavy5,
    ];

    /// Name in a URL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Lite => "lite",
            Self::Heavy1 => "heavy1",
            Self::Heavy2 => "heavy2",
            Self::Heavy3 => "heavy3",
            Self::Heavy5 => "heavy5",
        }
    }

    /// The SOAP operation for this size.
    pub const fn operation(self) -> &'static str {
        match self {
            Self::Hello => "Hello",
            Self::Lite => "BookLite",
            Self::Heavy1 => "BookHeavy1",
            Self::Heavy2 => "BookHeavy2",
            Self::Heavy3 => "BookHeavy3",
            Self::Heavy5 => "BookHeavy5",
        }
    }

    /// Bytes of the SOAP Body in the paper (`wsqos/table-4`). The generated bodies are within 5 % of it.
    pub const fn body_bytes(self) -> usize {
        match self {
            Self::Hello => 209,
            Self::Lite => 3_366,
            Self::Heavy1 => 16_055,
            Self::Heavy2 => 28_153,
            Self::Heavy3 => 36_049,
            Self::Heavy5 => 50_205,
        }
    }

    /// Number of books in a reply.
    pub(crate) const fn books(self) -> usize {
        match self {
            Self::Hello => 0,
            Self::Lite | Self::Heavy1 => 1,
            Self::Heavy2 => 2,
            Self::Heavy3 => 3,
            Self::Heavy5 => 5,
        }
    }

    /// Share of the vocabulary used by the reviews, so that they compress as in the paper.
    const fn width(self) -> f64 {
        match self {
            Self::Heavy1 => 0.7,
            Self::Heavy5 => 0.7,
            _ => 1.0,
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|size| size.name() == text);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("the size {text:?} is not one of {known}")
        })
    }
}

impl Catalogue {
    /// Generates `count` books from `seed`, at least one.
    pub fn new(count: usize, seed: Seed) -> Self {
        let prose = Prose::new();
        let mut random = seed.stream("books");
        let mut books: Vec<Book> = Vec::with_capacity(count);
        let mut index = HashMap::with_capacity(count);
        while books.len() < count.max(1) {
            let book = make_book(&prose, &mut random);
            if index.insert(book.isbn.clone(), books.len()).is_none() {
                books.push(book);
            } else {
                // Drawn twice: the ISBN stays with the first book.
                let first = books.iter().position(|first| first.isbn == book.isbn);
                let first = first.expect("the index has the ISBNs of the list");
                index.insert(book.isbn, first);
            }
        }
        let pools = [Size::Heavy1, Size::Heavy2, Size::Heavy3, Size::Heavy5];
        let reviews = pools.map(|size| {
            let mut random = seed.stream(size.name());
            let make = |_| make_review(&prose, size.width(), &mut random);
            (size, (0..POOL).map(make).collect())
        });
        Self {
            books,
            reviews: HashMap::from(reviews),
            index,
        }
    }

    /// All books, in their order in the list.
    pub fn books(&self) -> &[Book] {
        &self.books
    }

    /// The pool of reviews for a size, if it has reviews.
    pub(crate) fn reviews(&self, size: Size) -> Option<&[Review]> {
        self.reviews.get(&size).map(Vec::as_slice)
    }

    /// Index of the book with `isbn`, hyphens allowed.
    pub fn find(&self, isbn: &str) -> Result<usize, LookupError> {
        let normal = isbn::normalise(isbn).map_err(|reason| LookupError::Invalid {
            isbn: isbn.chars().take(32).collect(),
            reason,
        })?;
        self.index
            .get(&normal)
            .copied()
            .ok_or(LookupError::Unknown(normal))
    }
}

fn make_book(prose: &Prose, random: &mut posthaste_units::Stream) -> Book {
    let digits = format!("{:09}", random.random_range(0..1_000_000_000u32));
    let isbn = format!("{digits}{}", isbn::check_digit(digits.as_bytes()));
    let author = if random.random_bool(0.3) {
        format!("{} and {}", prose.person(random), prose.person(random))
    } else {
        prose.person(random)
    };
    let mut book = Book {
        isbn,
        title: prose.title(random),
        author,
        publisher: prose.house(random),
        subject: prose.subject(random),
        published: date(1970, 2003, random),
        pages: random.random_range(96..960),
        price: format!(
            "{}.{:02}",
            random.random_range(5..90),
            random.random_range(0..100)
        ),
        stock: random.random_range(1..100),
        description: String::new(),
    };
    let rest = CONTENT.saturating_sub(book.content_bytes());
    book.description = prose.sentences(rest, 1.0, random);
    book
}

impl Book {
    /// Bytes of information: every field without mark-up.
    pub fn content_bytes(&self) -> usize {
        let texts = [
            &self.isbn,
            &self.title,
            &self.author,
            &self.publisher,
            &self.published,
            &self.price,
            &self.description,
        ];
        let numbers = self.pages.to_string().len() + self.stock.to_string().len();
        texts.iter().map(|text| text.len()).sum::<usize>() + self.subject.len() + numbers
    }
}

fn make_review(prose: &Prose, width: f64, random: &mut posthaste_units::Stream) -> Review {
    Review {
        reviewer: prose.person(random),
        date: date(1999, 2005, random),
        rating: random.random_range(1..=5),
        text: prose.sentences(random.random_range(280..1400), width, random),
    }
}

fn date(from: u32, to: u32, random: &mut posthaste_units::Stream) -> String {
    let (year, month, day) = (
        random.random_range(from..to),
        random.random_range(1..=12),
        random.random_range(1..=28),
    );
    format!("{year}-{month:02}-{day:02}")
}
