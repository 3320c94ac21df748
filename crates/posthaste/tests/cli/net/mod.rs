//! `posthaste net` in real namespaces: as who runs the tests, and where that is root as an
//! ordinary user, too.
//!
//! Where a kernel forbids namespaces the tests say so and pass, except in CI, where everything has
//! to be possible.

mod duplicate_acks;
mod ends;
mod links;
mod privileges;
mod record;
mod relay;
mod router;
mod statuses;
mod terminal;

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::command::{Said, posthaste, said};

/// An ordinary user: "nobody" everywhere.
const NOBODY: u32 = 65_534;

/// Who runs posthaste.
#[derive(Clone, Copy, Debug)]
enum User {
    /// Who runs the tests.
    Own,
    /// An ordinary one.
    Nobody,
}

/// Says why a test has nothing to try here; where everything has to be tried, that is a failure.
fn skip(why: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!in_ci, "{why}");
    eprintln!("skipped: {why}");
}

/// As whom to run: nobody at all where namespaces are forbidden.
fn users() -> &'static [User] {
    static USERS: OnceLock<Vec<User>> = OnceLock::new();
    USERS.get_or_init(|| {
        let mut users = vec![User::Own];
        if rustix::process::geteuid().is_root() {
            users.push(User::Nobody);
        }
        users.retain(|user| {
            let tried = said(&mut net(*user, &["--", "true"]));
            let forbidden = tried.err.contains("no network of its own");
            if forbidden {
                skip(&format!("as {user:?}: {}", tried.err));
            }
            !forbidden
        });
        users
    })
}

/// `posthaste net` with these arguments.
fn net(user: User, arguments: &[&str]) -> Command {
    let mut command = match user {
        User::Own => posthaste(&[]),
        User::Nobody => {
            let mut command = Command::new(readable_binary());
            command
                .uid(NOBODY)
                .gid(NOBODY)
                .stdin(Stdio::null())
                .current_dir("/");
            command
        }
    };
    command.arg("net").args(arguments);
    command
}

/// The binary where everybody can start it, which may not be so where it was built.
fn readable_binary() -> &'static Path {
    static BINARY: OnceLock<tempfile::TempPath> = OnceLock::new();
    BINARY.get_or_init(|| {
        let copy = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        // By another process: what another test starts meanwhile would hold our descriptor until it has begun, and a
        // file that somebody may still write to cannot be started (ETXTBSY).
        let copied = Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_posthaste"))
            .arg(&copy)
            .status();
        assert!(copied.unwrap().success());
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
        copy
    })
}

/// The binary as commands inside name it.
fn own(user: User) -> String {
    match user {
        User::Own => env!("CARGO_BIN_EXE_posthaste").to_owned(),
        User::Nobody => readable_binary().to_str().unwrap().to_owned(),
    }
}

/// A folder that everybody may write to.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// Runs it, and reads the report it has written.
fn reported(user: User, arguments: &[&str]) -> (Said, Value) {
    let folder = folder();
    let path = folder.path().join("report.json");
    let mut command = net(user, &["--report", path.to_str().unwrap()]);
    let said = said(command.args(arguments));
    let report = std::fs::read(&path).unwrap_or_else(|error| panic!("{error}: {}", said.err));
    (said, serde_json::from_slice(&report).unwrap())
}
