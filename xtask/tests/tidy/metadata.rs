//! The locked packages, as cargo describes them.

use std::process::Command;

use serde_json::Value;

use crate::files::root;

/// The output of `cargo metadata` with these arguments.
pub(crate) fn metadata(arguments: &[&str]) -> Value {
    let cargo = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--all-features",
        ])
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("tidy runs cargo");
    let message = String::from_utf8_lossy(&cargo.stderr);
    assert!(cargo.status.success(), "cargo metadata: {message}");
    serde_json::from_slice(&cargo.stdout).expect("cargo writes JSON")
}

/// The elements of a list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}
