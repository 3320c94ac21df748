//! Where a store is, as it is written on a command line or in a configuration.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

use super::sqlite::Sqlite;
use super::{Store, StoreError};

/// Where offers are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In this file.
    Sqlite(PathBuf),
}

/// Why a text names no place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no store: want sqlite:FILE")]
pub struct PlaceError(String);

impl Place {
    /// Opens what is there, brings its schema up to date, or makes it.
    pub(crate) fn open(&self) -> Result<Box<dyn Store>, StoreError> {
        Ok(match self {
            Self::Sqlite(file) => Box::new(Sqlite::open(file)?),
        })
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        match scheme {
            "sqlite" if !rest.is_empty() => Ok(Self::Sqlite(rest.into())),
            _ => Err(PlaceError(text.to_owned())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => write!(f, "sqlite:{}", file.display()),
        }
    }
}
