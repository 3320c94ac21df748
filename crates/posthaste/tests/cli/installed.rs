//! The files that packages install: completion scripts and manual pages for all commands.

use super::command::{execute, posthaste};

/// Commands in the help, without `help` itself.
fn commands() -> Vec<String> {
    let help = execute(&mut posthaste(&["--help"])).out;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    listed
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split(' ').next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_shell_has_a_script_that_knows_every_command() {
    let commands = commands();
    assert!(commands.len() > 10, "{commands:?}");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = execute(&mut posthaste(&["completions", shell]));
        assert_eq!((script.code, script.err.as_str()), (Some(0), ""), "{shell}");
        for command in &commands {
            assert!(script.out.contains(command), "{shell} lacks {command}");
        }
    }
    let other = execute(&mut posthaste(&["completions", "tcsh"]));
    assert_eq!(other.code, Some(2));
    assert!(other.err.contains("bash"), "{}", other.err);
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let written = execute(&mut posthaste(&["man", pages.to_str().unwrap()]));
    assert_eq!((written.code, written.err.as_str()), (Some(0), ""));
    for command in commands() {
        let page = std::fs::read_to_string(pages.join(format!("posthaste-{command}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{command}");
        assert!(page.contains("Example"), "{command} has no example");
    }
    for below in ["broker-token-new", "offers-get", "pattern-make"] {
        assert!(pages.join(format!("posthaste-{below}.1")).is_file());
    }
    assert!(pages.join("posthaste.1").is_file());
    assert!(!pages.join("posthaste-man.1").exists());
}
