//! A quote: a price for one client, at a rate, until a point in time, with a signed token.
//!
//! A token consists of the quote and a message authentication code over the quote and the client's name (HMAC-SHA256,
//! RFC 2104), in base64url without padding. It does not contain the name. The client must be identified by other means,
//! and a token shown by another client counts as forged.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use posthaste_units::Instant;
use ring::hmac;
use thiserror::Error;

use posthaste_qos::{Currency, Money};

/// Maximum length of a client's name in a quote, in bytes.
pub(super) const LONGEST_CLIENT: usize = 256;

/// Bytes of the quote in a token: number, millionths, currency, rate, end, open or not.
const STATEMENT: usize = 8 + 8 + 3 + 8 + 8 + 1;
/// Bytes of the authentication code, not truncated.
const CODE: usize = 32;
/// Length of every token, in characters.
pub const TOKEN_LENGTH: usize = ((STATEMENT + CODE) * 4).div_ceil(3);

/// A price for one client.
#[derive(Clone, Debug, PartialEq)]
pub struct Quote {
    /// Number, unique within a ledger.
    pub number: u64,
    /// The client.
    pub client: String,
    /// Price of a request.
    pub price: Money,
    /// Valid only for requests that leave compression to the server.
    pub open: bool,
    /// Requests per second.
    pub rate: f64,
    /// End, on the monotonic clock of the process that issued it.
    pub until: Instant,
}

/// Key that signs quotes. Keep it secret, and generate a new one at each start.
#[derive(Clone)]
pub struct Key(hmac::Key);

/// A token that this key has not signed for this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the quote is not one that was given to this client: ask without it, and use the one that comes back"
)]
pub struct Forged;

impl Key {
    /// Creates a key from 32 random bytes.
    pub fn new(bytes: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// The token of a quote.
    pub fn sign(&self, quote: &Quote) -> String {
        let statement = quote.to_bytes();
        let code = hmac::sign(&self.0, &signed(&statement, &quote.client));
        let mut token = [0; STATEMENT + CODE];
        token[..STATEMENT].copy_from_slice(&statement);
        token[STATEMENT..].copy_from_slice(code.as_ref());
        URL_SAFE_NO_PAD.encode(token)
    }

    /// Verifies a token shown by `client` and returns its quote. The code is compared in constant time.
    pub fn read(&self, token: &str, client: &str) -> Result<Quote, Forged> {
        let mut bytes = [0; STATEMENT + CODE];
        match URL_SAFE_NO_PAD.decode_slice(token, &mut bytes) {
            Ok(length) if length == bytes.len() => {}
            _ => return Err(Forged),
        }
        let (statement, code) = bytes.split_at(STATEMENT);
        hmac::verify(&self.0, &signed(statement, client), code).map_err(|_| Forged)?;
        Quote::from_bytes(statement, client).ok_or(Forged)
    }
}

/// The bytes that the authentication code is for.
fn signed(statement: &[u8], client: &str) -> Vec<u8> {
    [statement, client.as_bytes()].concat()
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(secret)")
    }
}

impl Quote {
    fn to_bytes(&self) -> [u8; STATEMENT] {
        let mut statement = [0; STATEMENT];
        let currency = self.price.currency();
        statement[..8].copy_from_slice(&self.number.to_be_bytes());
        statement[8..16].copy_from_slice(&self.price.micros().to_be_bytes());
        statement[16..19].copy_from_slice(currency.code().as_bytes());
        statement[19..27].copy_from_slice(&self.rate.to_bits().to_be_bytes());
        statement[27..35].copy_from_slice(&self.until.as_nanos().to_be_bytes());
        statement[35] = self.open.into();
        statement
    }

    fn from_bytes(statement: &[u8], client: &str) -> Option<Self> {
        let number = |from: usize| Some(u64::from_be_bytes(*statement[from..].first_chunk()?));
        let currency: Currency = std::str::from_utf8(&statement[16..19]).ok()?.parse().ok()?;
        Some(Self {
            number: number(0)?,
            client: client.to_owned(),
            price: Money::from_micros(number(8)?, currency)?,
            open: statement[35] != 0,
            rate: f64::from_bits(number(19)?),
            until: Instant::from_nanos(number(27)?),
        })
    }
}
