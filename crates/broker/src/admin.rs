//! A store in the hands of whoever runs the broker: tokens, and who changed what.
//!
//! A broker at work on the same store notices within a second.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use posthaste_wsqos::qos::bounds;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::Error;
use crate::change::Change;
use crate::store::{Place, Store, StoreError};
use crate::token::Hash;

/// What every token begins with, for those who look for lost ones.
const PREFIX: &str = "pht_";

/// A store that is open.
pub struct Admin(Box<dyn Store>);

/// A token as a store knows it: not the token itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its number.
    pub number: u64,
    /// Whose offers it may change.
    pub provider: String,
    /// When it was made.
    pub made: Timestamp,
    /// When it was revoked, if so.
    pub revoked: Option<Timestamp>,
}

impl Admin {
    /// Opens a store, or makes it.
    pub fn open(place: &Place) -> Result<Self, Error> {
        Ok(Self(place.open().map_err(failed)?))
    }

    /// Opens a store that exists.
    pub fn open_existing(place: &Place) -> Result<Self, Error> {
        match place {
            Place::Sqlite(file) if !file.exists() => {
                let file = file.display();
                Err(Error::Store(format!(
                    "{file}: there is no such store; name one with --store, or make it with `posthaste broker token new PROVIDER`"
                )))
            }
            _ => Self::open(place),
        }
    }

    /// Lets a provider publish with one more token. The token is known to nobody after this.
    pub fn make_token(&mut self, provider: &str) -> Result<(u64, String), Error> {
        let is_name = !provider.is_empty()
            && provider.len() <= bounds::TEXT
            && !provider.contains(char::is_control);
        if !is_name {
            return Err(Error::Store(format!(
                "{provider:?} is no name of a provider"
            )));
        }
        let mut chance = [0; 32];
        // So few bytes come at once and whole (getrandom(2)).
        getrandom(&mut chance, GetRandomFlags::empty())
            .map_err(|error| Error::Thread(error.into()))?;
        let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(chance));
        let number = self.0.grant(provider, Hash::of(&token), Timestamp::now());
        Ok((number.map_err(failed)?, token))
    }

    /// Every token there has been.
    pub fn tokens(&mut self) -> Result<Vec<Token>, Error> {
        let tokens = self.0.tokens().map_err(failed)?;
        let shown = tokens.into_iter().map(|token| Token {
            number: token.grant.number,
            provider: token.grant.provider,
            made: token.made,
            revoked: token.revoked,
        });
        Ok(shown.collect())
    }

    /// Ends a token's validity; whether it was valid.
    pub fn revoke(&mut self, number: u64) -> Result<bool, Error> {
        self.0.revoke(number, Timestamp::now()).map_err(failed)
    }

    /// The newest changes, at most `most`, the newest first, each with the number of the token it came with.
    pub fn log(&mut self, most: usize) -> Result<Vec<(u64, Change)>, Error> {
        self.0.audit(most).map_err(failed)
    }
}

fn failed(error: StoreError) -> Error {
    Error::Store(error.to_string())
}
