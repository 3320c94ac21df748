//! Administration of a store: access tokens and the log of changes.
//!
//! A running broker on the same store sees a change within a second.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use posthaste_qos::bounds;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::BrokerError;
use crate::change::OfferChange;
use crate::store::{Store, StoreUrl};
use crate::token::{Hash, TokenRole};

/// Prefix of every token, for searches for leaked tokens.
const PREFIX: &str = "pht_";

/// An open store.
pub struct Admin(Box<dyn Store>);

/// A token as the store records it, without the secret itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderToken {
    /// Number of the token.
    pub number: u64,
    /// Rights of its bearer.
    pub role: TokenRole,
    /// Provider that may publish with it, or name of the bearer.
    pub provider: String,
    /// Time of creation.
    pub made: Timestamp,
    /// Time of revocation, if any.
    pub revoked: Option<Timestamp>,
}

impl Admin {
    /// Opens a store. Creates it if it does not exist.
    pub fn open(url: &StoreUrl) -> Result<Self, BrokerError> {
        Ok(Self(url.open()?))
    }

    /// Opens an existing store. Fails if the SQLite file is missing.
    pub fn open_existing(url: &StoreUrl) -> Result<Self, BrokerError> {
        match url {
            StoreUrl::Sqlite(file) if !file.exists() => {
                let file = file.display();
                Err(BrokerError::Store(format!(
                    "{file}: there is no such store; name one with --store, or make it with `posthaste broker token new PROVIDER`"
                ).into()))
            }
            _ => Self::open(url),
        }
    }

    /// Copies an existing SQLite store to a new file, also while brokers use it.
    pub fn backup(url: &StoreUrl, to: &Path) -> Result<(), BrokerError> {
        Self::open_existing(url)?;
        Ok(url.backup(to)?)
    }

    /// Creates one more token for a provider. Returns its number and the secret, which the store does not keep.
    pub fn make_token(&mut self, provider: &str) -> Result<(u64, String), BrokerError> {
        self.make_token_for(TokenRole::Provider, provider)
    }

    /// Creates a token with a role, for a bearer of this name. Otherwise as [`Admin::make_token`].
    pub fn make_token_for(
        &mut self,
        role: TokenRole,
        provider: &str,
    ) -> Result<(u64, String), BrokerError> {
        let is_name = !provider.is_empty()
            && provider.len() <= bounds::TEXT
            && !provider.contains(char::is_control);
        if !is_name {
            return Err(BrokerError::Store(
                format!("{provider:?} is no name of a token's bearer").into(),
            ));
        }
        let mut chance = [0; 32];
        // Reads of at most 256 bytes are complete and not interrupted (getrandom(2)).
        getrandom(&mut chance, GetRandomFlags::empty())
            .map_err(|error| BrokerError::Thread(error.into()))?;
        let token = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(chance));
        let hash = Hash::from_token(&token);
        let number = self.0.grant(role, provider, hash, Timestamp::now());
        Ok((number?, token))
    }

    /// All tokens, revoked ones included.
    pub fn tokens(&mut self) -> Result<Vec<ProviderToken>, BrokerError> {
        let tokens = self.0.tokens()?;
        let shown = tokens.into_iter().map(|token| ProviderToken {
            number: token.grant.number,
            role: token.grant.role,
            provider: token.grant.provider,
            made: token.made,
            revoked: token.revoked,
        });
        Ok(shown.collect())
    }

    /// Revokes a token. Returns true if the token was valid.
    pub fn revoke(&mut self, number: u64) -> Result<bool, BrokerError> {
        Ok(self.0.revoke(number, Timestamp::now())?)
    }

    /// Returns the newest changes, at most `most`, newest first, each with the number of the token that made it.
    pub fn log(&mut self, most: usize) -> Result<Vec<(u64, OfferChange)>, BrokerError> {
        Ok(self.0.audit(most)?)
    }
}
