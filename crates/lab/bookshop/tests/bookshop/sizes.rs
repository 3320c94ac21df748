//! Sizes of the papers (`wsqos/table-4`, `overload/fig-05`), checked over many books.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use posthaste_bookshop::{BookshopConfig, Catalogue, Size, normalise};
use posthaste_soap::Version;
use posthaste_units::Seed;

use crate::{call, get, isbns, open};

/// Bytes and compressed bytes of each reply's Body (`wsqos/table-4`).
const TABLE: [(Size, usize, usize); 6] = [
    (Size::Hello, 209, 256),
    (Size::Lite, 3_366, 1_390),
    (Size::Heavy1, 16_055, 6_038),
    (Size::Heavy2, 28_153, 10_222),
    (Size::Heavy3, 36_049, 12_350),
    (Size::Heavy5, 50_205, 15_470),
];

fn gzip(data: &[u8]) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap().len()
}

fn body(envelope: &str) -> &str {
    let (start, end) = ("<soap:Body>", "</soap:Body>");
    &envelope[envelope.find(start).unwrap()..envelope.find(end).unwrap() + end.len()]
}

#[test]
fn bodies_have_the_papers_sizes_and_compress_as_they_did() {
    for seed in [Seed::default(), Seed(7)] {
        let running = open(BookshopConfig {
            seed,
            books: 400,
            ..BookshopConfig::default()
        });
        for isbn in isbns(running.addr).iter().step_by(8) {
            for (size, bytes, compressed) in TABLE {
                let reply = call(running.addr, Version::Soap11, size.operation(), isbn);
                assert_eq!(reply.status, 200, "{}", reply.text());
                let body = body(reply.text());
                let off = body.len() as f64 / bytes as f64 - 1.0;
                assert!(off.abs() <= 0.05, "{isbn} {size:?}: {} bytes", body.len());
                let packed = gzip(body.as_bytes());
                if size == Size::Hello {
                    assert!(packed > body.len(), "hello grows: {packed}");
                    continue;
                }
                let (ours, theirs) = (
                    body.len() as f64 / packed as f64,
                    bytes as f64 / compressed as f64,
                );
                assert!((2.35..3.25).contains(&ours), "{isbn} {size:?}: {ours:.2}");
                assert!(
                    (ours / theirs - 1.0).abs() < 0.08,
                    "{isbn} {size:?}: {ours:.2} and not {theirs:.2}"
                );
            }
        }
    }
}

#[test]
fn lite_and_its_forms_have_the_sizes_of_the_paper() {
    let running = open(BookshopConfig::default());
    let catalogue = Catalogue::new(1000, Seed::default());
    for book in catalogue.books() {
        let content = book.content_bytes() + book.isbn.len();
        assert!((575..=592).contains(&content), "{content}: {book:?}");
    }
    for isbn in isbns(running.addr).iter().step_by(50) {
        let soap = call(running.addr, Version::Soap11, "BookLite", isbn);
        let request = crate::envelope(Version::Soap11, "BookLite", isbn).len() + 150;
        let wire = request + soap.head.len() + 4 + soap.body.len();
        assert!((3_900..4_600).contains(&wire), "{wire}");
        let page = get(running.addr, &format!("/page/{isbn}"));
        let wire = 60 + page.head.len() + 4 + page.body.len();
        assert!((1_080..1_320).contains(&wire), "{wire}");
    }
}

#[test]
fn the_three_forms_hold_the_same_information() {
    let running = open(BookshopConfig::default());
    let catalogue = Catalogue::new(1000, Seed::default());
    for book in catalogue.books().iter().step_by(97) {
        for size in ["lite", "heavy1"] {
            let operation = if size == "lite" {
                "BookLite"
            } else {
                "BookHeavy1"
            };
            let soap = call(running.addr, Version::Soap12, operation, &book.isbn);
            let page = get(running.addr, &format!("/page/{}?size={size}", book.isbn));
            let json = get(running.addr, &format!("/json/{}?size={size}", book.isbn));
            let (pages, stock) = (book.pages.to_string(), book.stock.to_string());
            for value in [
                &book.isbn,
                &book.title,
                &book.author,
                &book.publisher,
                &book.published,
                &book.price,
                &pages,
                &stock,
                &book.description,
            ] {
                for form in [&soap, &page, &json] {
                    assert!(
                        form.text().contains(&**value),
                        "{value:?} is not in {}",
                        form.text()
                    );
                }
            }
            let parsed: serde_json::Value = serde_json::from_slice(&json.body).unwrap();
            let reviews = parsed["books"][0]["reviews"]
                .as_array()
                .map_or(&[][..], Vec::as_slice);
            assert_eq!(reviews.is_empty(), size == "lite");
            for review in reviews {
                let text = review["text"].as_str().unwrap();
                assert!(soap.text().contains(text) && page.text().contains(text));
            }
        }
    }
}

#[test]
fn a_catalogue_is_valid_and_comes_again_from_its_seed() {
    let catalogue = Catalogue::new(1000, Seed(3));
    let mut seen = std::collections::HashSet::new();
    for book in catalogue.books() {
        assert_eq!(normalise(&book.isbn).as_ref(), Ok(&book.isbn));
        assert!(seen.insert(&book.isbn), "twice: {}", book.isbn);
    }
    assert_eq!(catalogue.books(), Catalogue::new(1000, Seed(3)).books());
    assert_ne!(catalogue.books(), Catalogue::new(1000, Seed(4)).books());
    // A smaller catalogue is the start of a larger one.
    assert_eq!(
        catalogue.books()[..10],
        Catalogue::new(10, Seed(3)).books()[..]
    );
}
