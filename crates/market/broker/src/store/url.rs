//! Location of a store, as written on a command line or in a configuration.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::postgres::{Postgres, words};
use super::sqlite::Sqlite;
use super::{Store, StoreError};

/// Location of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// SQLite database in this file.
    Sqlite(PathBuf),
    /// PostgreSQL database, which several brokers may share.
    Postgres(Box<Config>),
}

/// Errors in the location of a store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreUrlError {
    /// Unknown kind of store, or none.
    #[error("{0:?} is no store: want sqlite:FILE or postgres://USER@HOST/DATABASE")]
    Kind(String),
    /// Incomplete or invalid PostgreSQL address.
    #[error(
        "this is no PostgreSQL database: {0}: want postgres://USER:PASSWORD@HOST:PORT/DATABASE"
    )]
    Postgres(String),
}

impl StoreUrl {
    /// Opens the store. Migrates its schema, or creates it.
    pub(crate) fn open(&self) -> Result<Box<dyn Store>, StoreError> {
        Ok(match self {
            Self::Sqlite(file) => Box::new(Sqlite::open(file)?),
            Self::Postgres(config) => {
                Box::new(Postgres::open(config).map_err(|error| error.of(self))?)
            }
        })
    }

    /// Resolves a relative file against `folder`.
    pub(crate) fn beside(self, folder: &Path) -> Self {
        match self {
            Self::Sqlite(file) => Self::Sqlite(folder.join(file)),
            elsewhere => elsewhere,
        }
    }
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        match scheme {
            "sqlite" if !rest.is_empty() => Ok(Self::Sqlite(rest.into())),
            "postgres" | "postgresql" => postgres(text).map_err(StoreUrlError::Postgres),
            _ => Err(StoreUrlError::Kind(text.to_owned())),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => write!(f, "sqlite:{}", file.display()),
            // Omits the password.
            Self::Postgres(config) => {
                let name = config
                    .get_dbname()
                    .or(config.get_user())
                    .unwrap_or_default();
                let host = match config.get_hosts().first() {
                    Some(Host::Tcp(host)) => host.clone(),
                    Some(Host::Unix(folder)) => folder.display().to_string(),
                    None => String::new(),
                };
                write!(f, "postgres://{host}/{name}")
            }
        }
    }
}

fn postgres(url: &str) -> Result<StoreUrl, String> {
    let config: Config = url.parse().map_err(|error| words(&error))?;
    if config.get_hosts().is_empty() {
        return Err("it has no host".to_owned());
    }
    if config.get_user().is_none() {
        return Err("it has no user".to_owned());
    }
    Ok(StoreUrl::Postgres(Box::new(config)))
}
