//! Privileges of commands inside, and missing ones, which are reported with the remedy: user namespaces, real-time
//! priority.

use std::process::Command;

use super::{NOBODY, User, folder, net, own, reported, skip, users};
use crate::command::execute;

/// No user namespace can be created here, and no root privilege replaces it.
#[test]
fn without_user_namespaces_the_remedy_is_named() {
    // Users that may not create one have already got this message.
    for user in users().iter().take(1) {
        let forbid = "echo 0 > /proc/sys/user/max_user_namespaces && \
            exec setpriv --bounding-set=-all --inh-caps=-all \"$0\" net -- true";
        let mut inside = Command::new("unshare");
        inside.args(["--user", "--map-root-user", "sh", "-c", forbid, &own(*user)]);
        let run = execute(&mut inside);
        assert_eq!(run.code, Some(3), "{}", run.err);
        for message in [
            "no network of its own: user namespace refused",
            "sysctl user.max_user_namespaces=10000, or run as root",
        ] {
            assert!(run.err.contains(message), "{}", run.err);
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
                let run = execute(Command::new("sh").args(["-c", &line]));
                let report = serde_json::from_str(&run.out).unwrap();
                (run, report)
            }
        };
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert_eq!(report["real_time"], false);
        let message = "without real-time priority (`posthaste doctor` shows how to get it)";
        assert!(run.err.contains(message), "{}", run.err);
    }
    // A run without packets has no lateness to report.
    let quiet = execute(&mut net(User::Own, &["--quiet", "--", "true"]));
    assert!(users().is_empty() || quiet.err.is_empty(), "{}", quiet.err);
}

/// Bits of capabilities (linux/capability.h).
const DAC_OVERRIDE: u32 = 1;
const NET_ADMIN: u32 = 12;
const NET_RAW: u32 = 13;
const SYS_MODULE: u32 = 16;
const SYS_BOOT: u32 = 22;
const SYS_NICE: u32 = 23;
const SYS_TIME: u32 = 25;

/// Prints the capabilities, the limits of priority, and the namespaces of users and host names.
const STATE: &str = "grep -E '^Cap(Eff|Bnd|Prm)' /proc/self/status; grep realtime /proc/self/limits; \
    readlink /proc/self/ns/uts /proc/self/ns/user";

/// Effective capabilities in the output of [`STATE`].
fn effective(state: &str) -> u64 {
    let mut lines = state.lines();
    let line = lines.find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(line.trim(), 16).unwrap()
}

fn state_here() -> String {
    execute(Command::new("sh").args(["-c", STATE])).out
}

#[test]
fn commands_have_no_capabilities_over_the_machine() {
    let here = state_here();
    for user in users() {
        for options in [&["--"][..], &["--server", "PROBE", "--"]] {
            let shop = format!(
                "{{ {STATE}; }} >&2; exec {} bookshop --listen 0.0.0.0:80",
                own(*user)
            );
            let probe = |word: &&str| {
                if *word == "PROBE" {
                    shop.clone()
                } else {
                    (*word).to_owned()
                }
            };
            let options: Vec<String> = options.iter().map(probe).collect();
            let mut run = net(*user, &[]);
            let run = execute(run.args(&options).args(["sh", "-c", STATE]));
            assert_eq!(run.code, Some(0), "{}", run.err);
            // The server writes to standard error.
            let inside = if options.len() > 1 {
                &run.err
            } else {
                &run.out
            };
            let has = |number: u32| effective(inside) >> number & 1 == 1;
            for number in [SYS_TIME, SYS_BOOT, SYS_MODULE, SYS_NICE] {
                assert!(!has(number), "{number}: {inside}");
            }
            let is_root = matches!(user, User::Own) && rustix::process::geteuid().is_root();
            for number in [DAC_OVERRIDE, NET_ADMIN, NET_RAW] {
                assert_eq!(has(number), is_root, "{number}: {inside}");
            }
            for line in here.lines().filter(|line| line.contains(":[")) {
                assert!(!inside.contains(line), "{line} of the machine: {inside}");
            }
            let priority = here.lines().find(|line| line.contains("realtime"));
            assert!(inside.contains(priority.unwrap()), "{inside}");
        }
    }
}

#[test]
fn capabilities_can_be_kept() {
    let here = state_here();
    for user in users() {
        let run = execute(&mut net(
            *user,
            &["--keep-capabilities", "--", "sh", "-c", STATE],
        ));
        assert_eq!(run.code, Some(0), "{}", run.err);
        match user {
            User::Own if effective(&here) >> SYS_TIME & 1 == 1 => assert_eq!(run.out, here),
            _ => assert_eq!(effective(&run.out), 0, "{}", run.out),
        }
    }
}

#[test]
fn root_inside_has_files_users_and_a_network() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root has more than its own files");
    }
    let folder = folder();
    let file = folder.path().join("file");
    // The host name is changed only in a namespace of its own.
    let script = format!(
        "set -e; echo 1 > /proc/sys/net/ipv4/ip_forward; cat /proc/sys/net/ipv4/ip_forward
        echo text > {file}; chown {NOBODY} {file}; chmod 600 {file}; cat {file}
        setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups cat {file}
        test $(readlink /proc/self/ns/uts) != $0; echo inside > /proc/sys/kernel/hostname; uname -n",
        file = file.display()
    );
    let uts = std::fs::read_link("/proc/self/ns/uts").unwrap();
    let name = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let before = name();
    for _ in users().iter().take(1) {
        let run = execute(net(User::Own, &["--", "sh", "-c", &script]).arg(&uts));
        let expected = (Some(0), "1\ntext\ntext\ninside\n");
        assert_eq!((run.code, run.out.as_str()), expected, "{}", run.err);
    }
    assert_eq!(name(), before);
}

/// A user namespace takes the capability away. A process outside of it gives the priority.
#[test]
fn a_confined_root_has_real_time_priority() {
    let held = effective(&state_here());
    if held >> SYS_NICE & 1 == 0 {
        return skip("only root may have real-time priority");
    }
    for _ in users().iter().take(1) {
        let (run, report) = reported(User::Own, &["--", "true"]);
        assert_eq!(report["real_time"], true, "{}", run.err);
    }
}

/// Root could do without a user namespace, so it may choose.
#[test]
fn root_without_user_namespaces_can_keep_its_capabilities() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can keep its capabilities");
    }
    for _ in users().iter().take(1) {
        // In a user namespace of its own, so that the limit is not the machine's.
        let run_net = |option: &str| {
            let forbid = format!(
                "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" net {option} -- true"
            );
            let mut inside = Command::new("unshare");
            inside.args([
                "--user",
                "--map-root-user",
                "sh",
                "-c",
                &forbid,
                &own(User::Own),
            ]);
            execute(&mut inside)
        };
        let run = run_net("");
        assert_eq!(run.code, Some(3), "{}", run.err);
        assert!(run.err.contains("--keep-capabilities"), "{}", run.err);
        assert_eq!(run_net("--keep-capabilities").code, Some(0));
    }
}
