//! The identity of a program and its machine, so that agents can be compared.

use std::fs::{self, File};
use std::io;

use ring::digest::{Context, SHA256};

/// Program and machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// SHA-256 of the executable, in hexadecimal.
    pub build: String,
    /// Version, for messages to users.
    pub version: String,
    /// Name of the processor. Empty if it is not known.
    pub processor: String,
    /// Identity of the machine. Empty if it has none.
    pub machine: String,
}

impl Identity {
    /// Reads the executable of this process, and facts about the machine.
    pub fn of_this_program() -> io::Result<Self> {
        Ok(Self {
            build: digest_of(File::open("/proc/self/exe")?)?,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            processor: processor().unwrap_or_default(),
            machine: machine().unwrap_or_default(),
        })
    }
}

fn digest_of(file: File) -> io::Result<String> {
    let mut reader = io::BufReader::with_capacity(1 << 20, file);
    let mut digest = Context::new(&SHA256);
    loop {
        let piece = io::BufRead::fill_buf(&mut reader)?;
        if piece.is_empty() {
            break;
        }
        digest.update(piece);
        let length = piece.len();
        io::BufRead::consume(&mut reader, length);
    }
    let digest = digest.finish();
    Ok(digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// The name of the processor, or its implementer and part where there is no name.
fn processor() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let field = |name: &str| {
        let mut lines = info.lines();
        let line = lines.find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    field("model name").or_else(|| {
        Some(format!(
            "{} {}",
            field("CPU implementer")?,
            field("CPU part")?
        ))
    })
}

/// A digest of the machine's id: the id itself is not meant to be passed on (machine-id(5)).
fn machine() -> Option<String> {
    let id = fs::read_to_string("/etc/machine-id").ok()?;
    let mut digest = Context::new(&SHA256);
    digest.update(b"posthaste");
    digest.update(id.trim().as_bytes());
    let digest = digest.finish();
    Some(
        digest.as_ref()[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    )
}
