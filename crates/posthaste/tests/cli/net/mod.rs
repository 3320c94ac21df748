//! `posthaste net` in real namespaces: as the user of the tests and, if that is root, also as an ordinary user.
//!
//! If the kernel forbids namespaces, the tests say so and pass, except in CI, where everything must be possible.

mod control;
mod duplicate_acks;
mod ends;
mod handshakes;
mod initials;
mod links;
mod privileges;
mod record;
mod relay;
mod router;
mod statuses;
mod terminal;

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::command::{CommandOutput, execute, posthaste};

/// An ordinary user: "nobody" everywhere.
const NOBODY: u32 = 65_534;

/// The user that runs posthaste.
#[derive(Clone, Copy, Debug)]
enum User {
    /// The user that runs the tests.
    Own,
    /// An ordinary user.
    Nobody,
}

/// Prints the reason why a test cannot run here. In CI that is a failure.
fn skip(why: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!in_ci, "{why}");
    eprintln!("skipped: {why}");
}

/// Users to run as. None if namespaces are forbidden.
fn users() -> &'static [User] {
    static USERS: OnceLock<Vec<User>> = OnceLock::new();
    USERS.get_or_init(|| {
        let mut users = vec![User::Own];
        if rustix::process::geteuid().is_root() {
            users.push(User::Nobody);
        }
        users.retain(|user| {
            let tried = execute(&mut net(*user, &["--", "true"]));
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

/// A copy of the binary that everybody can start. The original may be in a private folder.
fn readable_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        // A static is never dropped, so that each run would leave another file. This one is replaced.
        let path = std::env::temp_dir().join("posthaste-for-everybody");
        let copy = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        // By another process, because processes started by other tests would inherit our descriptor until their exec. A
        // file that is open for writing cannot be started (ETXTBSY).
        let copied = Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_posthaste"))
            .arg(&copy)
            .status();
        assert!(copied.unwrap().success());
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
        copy.persist(&path).unwrap();
        path
    })
}

/// Path of the binary for commands inside.
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

/// Runs it, and reads its report.
fn reported(user: User, arguments: &[&str]) -> (CommandOutput, Value) {
    let folder = folder();
    let path = folder.path().join("report.json");
    let mut command = net(user, &["--report", path.to_str().unwrap()]);
    let output = execute(command.args(arguments));
    let report = std::fs::read(&path).unwrap_or_else(|error| panic!("{error}: {}", output.err));
    (output, serde_json::from_slice(&report).unwrap())
}
