//! Missing privileges are reported with the remedy: user namespaces, real-time priority.

use std::process::Command;

use super::{User, net, own, reported, users};
use crate::command::said;

/// No user namespace can be created here, and no root privilege replaces it.
#[test]
fn without_user_namespaces_the_remedy_is_named() {
    // Users that may not create one have already got this message.
    for user in users().iter().take(1) {
        let forbid = "echo 0 > /proc/sys/user/max_user_namespaces && \
            exec setpriv --bounding-set=-all --inh-caps=-all \"$0\" net -- true";
        let mut inside = Command::new("unshare");
        inside.args(["--user", "--map-root-user", "sh", "-c", forbid, &own(*user)]);
        let run = said(&mut inside);
        assert_eq!(run.code, Some(3), "{}", run.err);
        for words in [
            "no network of its own: user namespace refused",
            "sysctl user.max_user_namespaces=10000, or run as root",
        ] {
            assert!(run.err.contains(words), "{}", run.err);
        }
    }
}

#[test]
fn without_real_time_priority_the_report_says_so() {
    for user in users() {
        let (run, report) = match user {
            User::Nobody => reported(*user, &["--", "true"]),
            User::Own => {
                let nice = "exec setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice";
                let line = format!("{nice} {} net --report /dev/stdout -- true", own(*user));
                let run = said(Command::new("sh").args(["-c", &line]));
                let report = serde_json::from_str(&run.out).unwrap();
                (run, report)
            }
        };
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert_eq!(report["real_time"], false);
        let words = "without real-time priority (`posthaste doctor` says how to get it)";
        assert!(run.err.contains(words), "{}", run.err);
    }
    // A run without packets has no lateness to report.
    let quiet = said(&mut net(User::Own, &["--quiet", "--", "true"]));
    assert!(users().is_empty() || quiet.err.is_empty(), "{}", quiet.err);
}
