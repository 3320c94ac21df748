//! Location of a store, as written on a command line or in a configuration.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;
#[cfg(feature = "postgres")]
use tokio_postgres::Config;
#[cfg(feature = "postgres")]
use tokio_postgres::config::Host;

#[cfg(feature = "postgres")]
use super::postgres::{Postgres, error_message};
use super::sqlite::Sqlite;
use super::sqlite::backup::backup;
use super::{Store, StoreError};

/// Location of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// SQLite database in this file.
    Sqlite(PathBuf),
    /// PostgreSQL database, which several brokers may share.
    #[cfg(feature = "postgres")]
    Postgres(Box<Config>),
}

/// Errors in the location of a store.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreUrlError {
    /// Unknown kind of store, or none.
    #[error("{0:?} is not a store: write sqlite:FILE or postgres://USER@HOST/DATABASE")]
    Kind(String),
    /// Incomplete or invalid PostgreSQL address.
    #[cfg(feature = "postgres")]
    #[error(
        "the URL of the PostgreSQL database is not valid: {0}: write postgres://USER:PASSWORD@HOST:PORT/DATABASE"
    )]
    Postgres(String),
    /// PostgreSQL address, in a build without PostgreSQL.
    #[cfg(not(feature = "postgres"))]
    #[error(
        "this build has no PostgreSQL, which is its feature `postgres`: every package has it, and \
         `cargo install --locked --path crates/posthaste --features postgres`"
    )]
    NoPostgres,
}

impl StoreUrl {
    /// Opens the store. Migrates its schema, or creates it.
    pub(crate) fn open(&self) -> Result<Box<dyn Store>, StoreError> {
        Ok(match self {
            Self::Sqlite(file) => Box::new(Sqlite::open(file)?),
            #[cfg(feature = "postgres")]
            Self::Postgres(config) => {
                Box::new(Postgres::open(config).map_err(|error| error.with_store(self))?)
            }
        })
    }

    /// Resolves a relative file against `folder`.
    pub(crate) fn beside(self, folder: &Path) -> Self {
        match self {
            Self::Sqlite(file) => Self::Sqlite(folder.join(file)),
            #[cfg(feature = "postgres")]
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
            "postgres" | "postgresql" => postgres(text),
            _ => Err(StoreUrlError::Kind(text.to_owned())),
        }
    }
}

impl StoreUrl {
    /// The same store, with the whole path of a file.
    #[must_use]
    pub fn absolute(self) -> Self {
        match self {
            Self::Sqlite(file) => Self::Sqlite(std::path::absolute(&file).unwrap_or(file)),
            #[cfg(feature = "postgres")]
            Self::Postgres(config) => Self::Postgres(config),
        }
    }
}

impl StoreUrl {
    /// Copies an SQLite database to a new file. PostgreSQL has programs of its own for this.
    pub(crate) fn backup(&self, to: &Path) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(file) => backup(file, to),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Err(StoreError::Unavailable(
                "back up a PostgreSQL database with pg_dump".to_owned(),
            )),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => write!(f, "sqlite:{}", file.display()),
            // Omits the password.
            #[cfg(feature = "postgres")]
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

#[cfg(feature = "postgres")]
fn postgres(url: &str) -> Result<StoreUrl, StoreUrlError> {
    let config: Config = url
        .parse()
        .map_err(|error| StoreUrlError::Postgres(error_message(&error)))?;
    let lacks = |part: &str| Err(StoreUrlError::Postgres(format!("it has no {part}")));
    if config.get_hosts().is_empty() {
        return lacks("host");
    }
    if config.get_user().is_none() {
        return lacks("user");
    }
    Ok(StoreUrl::Postgres(Box::new(config)))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str) -> Result<StoreUrl, StoreUrlError> {
    Err(StoreUrlError::NoPostgres)
}
