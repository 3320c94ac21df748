//! Requirements in a file.

use posthaste_qos::{Document, Requirement};

/// Reads the file named by an argument: a .wsqos document, or JSON with the same names.
pub(super) fn requirements(file: &str) -> Result<Requirement, String> {
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    let requirement = if bytes.trim_ascii_start().starts_with(b"{") {
        serde_json::from_slice(&bytes).map_err(|error| error.to_string())?
    } else {
        match Document::read(&bytes).map_err(|error| error.to_string())? {
            Document::Requirement(requirement) => requirement,
            _ => return Err("there are no requirements in it".to_owned()),
        }
    };
    requirement.check().map_err(|error| error.to_string())?;
    Ok(requirement)
}
