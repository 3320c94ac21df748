//! Names of fleets, agents and runs. Every value is one token of a NATS subject and a valid part of a file name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Maximum length of the name of a fleet or an agent.
pub const MAX_NAME: usize = 32;

/// Name of a fleet: agents and conductors with the same name see each other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FleetName(String);

/// Name of an agent, unique in its fleet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

/// Number of a run, random, written as 16 hexadecimal digits in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(u64);

/// A text that is no name.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NameError {
    /// Not a name of a fleet or an agent.
    #[error(
        "{0:?} is not a name: use 1 to {MAX_NAME} of the letters a to z, the digits 0 to 9 and the hyphen"
    )]
    Name(String),
    /// Not a number of a run.
    #[error("{0:?} is not a run: write 16 hexadecimal digits in lower case")]
    Run(String),
}

impl FleetName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AgentName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A name from that of this host, see [`Self::from_host`].
    pub fn of_this_host() -> Result<Self, NameError> {
        let host = rustix::system::uname();
        Self::from_host(&host.nodename().to_string_lossy())
    }

    /// A name from the name of a host: in lower case, up to the first dot, other characters as hyphens.
    pub fn from_host(host: &str) -> Result<Self, NameError> {
        let label = host.split('.').next().unwrap_or_default();
        let allowed = |character: char| match character.to_ascii_lowercase() {
            letter if is_allowed(letter) => letter,
            _ => '-',
        };
        label
            .chars()
            .take(MAX_NAME)
            .map(allowed)
            .collect::<String>()
            .parse()
    }
}

impl RunId {
    /// The run of this number.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// A random run, from the kernel.
    pub fn random() -> Self {
        Self(u64::from_ne_bytes(crate::machine::random::bytes()))
    }
}

fn is_allowed(character: char) -> bool {
    matches!(character, 'a'..='z' | '0'..='9' | '-')
}

/// The text, if it is a name.
fn name(text: String) -> Result<String, NameError> {
    let is_name = (1..=MAX_NAME).contains(&text.len()) && text.chars().all(is_allowed);
    if is_name {
        Ok(text)
    } else {
        Err(NameError::Name(text))
    }
}

impl TryFrom<String> for FleetName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        name(text).map(Self)
    }
}

impl TryFrom<String> for AgentName {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        name(text).map(Self)
    }
}

impl TryFrom<String> for RunId {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_run = text.len() == 16 && text.bytes().all(is_digit);
        let bits = u64::from_str_radix(&text, 16).ok().filter(|_| is_run);
        bits.map(Self).ok_or(NameError::Run(text))
    }
}

impl FromStr for FleetName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        text.to_owned().try_into()
    }
}

impl FromStr for AgentName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        text.to_owned().try_into()
    }
}

impl FromStr for RunId {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        text.to_owned().try_into()
    }
}

impl From<FleetName> for String {
    fn from(name: FleetName) -> Self {
        name.0
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> Self {
        run.to_string()
    }
}

impl fmt::Display for FleetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
