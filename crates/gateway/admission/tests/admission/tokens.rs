//! Tokens: their content, their client, and the rejection of all others.

use posthaste_admission::{Key, Quote, TOKEN_LENGTH};
use posthaste_units::Instant;
use proptest::prelude::*;

use super::{at, price};

proptest! {
    #[test]
    fn a_token_yields_its_quote_only_to_its_client_and_key(
        number: u64,
        micros in 0u64..1_000_000_000_000_000_000,
        rate in 0.0f64..1e9,
        until: u64,
        open: bool,
        client in ".{0,40}",
        other in ".{0,40}",
    ) {
        let key = Key::new(&[7; 32]);
        let until = Instant::from_nanos(until);
        let quote = Quote { number, client: client.clone(), price: price(micros), open, rate, until };
        let token = key.sign(&quote);
        prop_assert_eq!(token.len(), TOKEN_LENGTH);
        prop_assert_eq!(key.read(&token, &client), Ok(quote));
        prop_assert_eq!(key.read(&token, &other).is_ok(), client == other);
        prop_assert!(Key::new(&[8; 32]).read(&token, &client).is_err());
    }

    #[test]
    fn arbitrary_text_is_rejected_as_a_token(text in ".{0,200}") {
        prop_assert!(Key::new(&[7; 32]).read(&text, "ada").is_err());
    }
}

#[test]
fn a_token_with_any_bit_flipped_is_forged() {
    let key = Key::new(&std::array::from_fn(|index| index as u8));
    let until = at(2000);
    let client = "ada".to_owned();
    let quote = Quote {
        number: 3,
        client,
        price: price(300_000),
        open: true,
        rate: 1.5,
        until,
    };
    let token = key.sign(&quote);
    for index in 0..token.len() {
        for bit in 0..8 {
            let mut bytes = token.clone().into_bytes();
            bytes[index] ^= 1 << bit;
            if let Ok(text) = String::from_utf8(bytes) {
                assert!(
                    key.read(&text, "ada").is_err(),
                    "bit {bit} of character {index}"
                );
            }
        }
    }
    for cut in [&token[1..], &token[..token.len() - 1], ""] {
        assert!(key.read(cut, "ada").is_err());
    }
    assert!(key.read(&format!("{token}="), "ada").is_err());
}

/// The code is HMAC-SHA256 over the quote and the client's name, so another implementation can check it.
#[test]
fn a_token_is_the_same_in_every_release() {
    let until = Instant::from_nanos(5);
    let client = "ada".to_owned();
    let quote = Quote {
        number: 1,
        client,
        price: price(400_000),
        open: false,
        rate: 2.0,
        until,
    };
    let token = Key::new(&[0x0b; 32]).sign(&quote);
    assert_eq!(token, PINNED);
}

/// Computed by another implementation.
const PINNED: &str =
    "AAAAAAAAAAEAAAAAAAYagEVVUkAAAAAAAAAAAAAAAAAAAAUAAPf4eaCaAAtIrUbypPz7dyWvkSBymKj6zRf00whyxtQ";
