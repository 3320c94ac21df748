//! A WS-QoS document: what is read is within its bounds, is written so that it is read again, and can be
//! compared with itself.

use std::collections::HashMap;

use posthaste_qos::{Document, Offer, Rates, Requirement, World, is_adequate, objections};

use crate::within;

/// Bytes that may be allocated for each byte read: an operation of 30 bytes takes some 300.
const PER_BYTE: usize = 100;

/// Bytes that may be allocated whatever the length.
const FIXED: usize = 1 << 20;

/// Offers of one document that are compared with each other.
const COMPARED: usize = 8;

/// Any bytes as a document, and as JSON.
pub fn offers(bytes: &[u8]) {
    let read = within("Document::read", bytes.len(), PER_BYTE, FIXED, || {
        Document::read(bytes)
    });
    match read {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(document) => {
            assert!(document.check().is_ok());
            let written = document.write();
            let again = Document::read(written.as_bytes());
            assert_eq!(again.as_ref(), Ok(&document), "{written}");
            if let Document::Offers(offers) = &document {
                let some = &offers.offers[..offers.offers.len().min(COMPARED)];
                some.iter()
                    .for_each(|offer| some.iter().for_each(|other| compare(offer, other)));
            }
        }
    }
    if let Ok(offer) = serde_json::from_slice::<Offer>(bytes) {
        let text = serde_json::to_string(&offer).expect("it was read");
        assert_eq!(
            serde_json::from_str::<Offer>(&text).ok().as_ref(),
            Some(&offer),
            "{text}"
        );
    }
    let _ = serde_json::from_slice::<Requirement>(bytes);
}

fn compare(offer: &Offer, other: &Offer) {
    let rates = Rates::new("EUR".parse().expect("a currency"));
    let world = World {
        now: other.expires,
        rates: &rates,
        ontologies: &HashMap::new(),
    };
    let found = objections(offer, &other.qos, &world);
    assert_eq!(found.is_empty(), is_adequate(offer, &other.qos, &world));
    assert!(
        found
            .iter()
            .all(|objection| !objection.to_string().is_empty())
    );
}
