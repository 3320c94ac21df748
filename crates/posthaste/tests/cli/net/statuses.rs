//! Exit statuses that pass through, and messages for commands that cannot be run.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;

use super::{folder, net, own, users};
use crate::command::execute;

#[test]
fn output_and_status_pass_through() {
    for user in users() {
        let run = execute(&mut net(
            *user,
            &["--", "sh", "-c", "echo out; echo err >&2; exit 7"],
        ));
        assert_eq!(
            (run.code, run.out.as_str()),
            (Some(7), "out\n"),
            "{}",
            run.err
        );
        assert!(
            run.err.starts_with("err\nposthaste: 0 connections"),
            "{}",
            run.err
        );
        let killed = execute(&mut net(*user, &["--", "sh", "-c", "kill -TERM $$"]));
        assert_eq!(killed.code, Some(128 + 15), "{}", killed.err);
        let server = execute(&mut net(
            *user,
            &["--", "sh", "-c", "echo $POSTHASTE_SERVER"],
        ));
        assert_eq!(server.out, "10.0.0.2\n");
        let quiet = execute(&mut net(*user, &["--quiet", "--", "true"]));
        assert_eq!((quiet.code, quiet.err.as_str()), (Some(0), ""));
    }
}

#[test]
fn words_that_are_no_text_reach_the_command() {
    for user in users() {
        let mut command = net(*user, &["--", "printf", "%s"]);
        let run = command.arg(OsStr::from_bytes(b"a\xffb")).output().unwrap();
        let err = String::from_utf8_lossy(&run.stderr);
        assert_eq!(
            (run.status.code(), &run.stdout[..]),
            (Some(0), &b"a\xffb"[..]),
            "{err}"
        );
    }
}

#[test]
fn commands_that_cannot_be_started_are_named() {
    let folder = folder();
    let text = folder.path().join("text");
    fs::write(&text, "words").unwrap();
    let script = folder.path().join("script");
    fs::write(&script, "#!/nowhere/at/all\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let cases = [
        ("no-such-command", 127, "not found"),
        (text.to_str().unwrap(), 126, "cannot be run"),
        (script.to_str().unwrap(), 126, "interpreter"),
    ];
    for user in users() {
        for (command, code, message) in cases {
            let run = execute(&mut net(*user, &["--", command]));
            assert_eq!(run.code, Some(code), "{}", run.err);
            assert!(
                run.err.contains(command) && run.err.contains(message),
                "{}",
                run.err
            );
        }
    }
}

#[test]
fn a_server_that_does_not_serve_is_named() {
    for user in users() {
        let run = execute(&mut net(*user, &["--server", "exit 5", "--", "true"]));
        assert_eq!(run.code, Some(3), "{}", run.err);
        assert!(
            run.err.contains("--server") && run.err.contains("exit status: 5"),
            "{}",
            run.err
        );
    }
}

#[test]
fn settings_refused_by_the_kernel_are_named() {
    for user in users() {
        for (option, value, message) in [
            ("--sysctl", "net.ipv4.no_such_thing=1", "no_such_thing"),
            ("--sysctl", "kernel.hostname=x", "kernel.hostname"),
            (
                "--sysctl",
                "net.ipv4.tcp_congestion_control=cubic",
                "congctl cubic",
            ),
            ("--route", "congctl no-such-control", "route"),
        ] {
            let run = execute(&mut net(*user, &[option, value, "--", "true"]));
            // If cubic is the machine's default, setting it again is no mistake.
            if run.code != Some(0) || !value.ends_with("=cubic") {
                assert_eq!(run.code, Some(3), "{value}: {}", run.err);
                assert!(run.err.contains(message), "{value}: {}", run.err);
            }
        }
    }
}

#[test]
fn usage_is_checked_before_anything_is_started() {
    for user in users() {
        let posthaste = own(*user);
        for options in [
            &["--up", "--delya 3ms"][..],
            &["--profile", "ltee"],
            &["--drop", "8"],
            &["--to", "nowhere"],
        ] {
            let run = execute(net(*user, options).args(["--", &posthaste]));
            assert_eq!(run.code, Some(2), "{options:?}: {}", run.err);
            assert!(run.err.contains(options[0]), "{}", run.err);
        }
    }
    let run = execute(&mut net(super::User::Own, &["curl", "http://example.org/"]));
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("--"), "{}", run.err);
}

#[test]
fn a_file_that_cannot_be_made_costs_no_run() {
    for user in users() {
        for (option, file) in [
            ("--report", "/proc/none.json"),
            ("--record", "/proc/none.csv"),
            ("--trace", "/proc/none.csv"),
        ] {
            let run = execute(&mut net(*user, &[option, file, "--", "echo", "ran"]));
            assert_eq!((run.code, run.out.as_str()), (Some(3), ""), "{}", run.err);
            let remedy = "name a file in a folder that can be written to";
            assert!(
                run.err.contains(file) && run.err.contains(remedy),
                "{}",
                run.err
            );
        }
    }
}

#[test]
fn a_full_disk_costs_the_file_and_not_the_report() {
    let folder = folder();
    for user in users() {
        for (option, name) in [
            ("--report", "report.json"),
            ("--record", "record.csv"),
            ("--trace", "trace.csv"),
            ("--trace", "trace.pcapng"),
            ("--trace", "trace.txt"),
        ] {
            let file = folder.path().join(name);
            let _ = std::os::unix::fs::symlink("/dev/full", &file);
            let file = file.to_str().unwrap();
            let run = execute(&mut net(*user, &[option, file, "--", "echo", "ran"]));
            assert_eq!(
                (run.code, run.out.as_str()),
                (Some(3), "ran\n"),
                "{}",
                run.err
            );
            for message in ["posthaste: 0 connections", file, "make room"] {
                assert!(run.err.contains(message), "{message}: {}", run.err);
            }
        }
    }
}
