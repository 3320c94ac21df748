//! `unsafe` appears only at system calls, always with a reason.

use proc_macro2::{TokenStream, TokenTree};

use crate::files::{Source, rust};
use crate::layers::{CrateKind, crate_rule};
use crate::{Finding, expect_none};

/// Maximum distance in lines between `unsafe` and the beginning of its reason: a comment of some lines and an
/// attribute.
const REACH: usize = 8;

/// Files that may contain `unsafe`, and the purpose. Everywhere else this test forbids it.
const MAY: &[(&str, &str)] = &[
    (
        "crates/lab/bookshop/src/law.rs",
        "getrusage of a thread, which rustix lacks",
    ),
    (
        "crates/lab/bookshop/src/pace.rs",
        "registration of a descriptor with tokio, which cannot know that it stays open",
    ),
    (
        "crates/network/emulator/examples/measure/flood.rs",
        "sendmmsg, which rustix lacks",
    ),
    (
        "crates/network/emulator/examples/measure/sink.rs",
        "the ioctl that reads a packet's stamp",
    ),
    (
        "crates/network/emulator/src/path/device/ring.rs",
        "packet sockets and their ring, which is memory shared with the kernel",
    ),
    (
        "crates/network/emulator/src/processes/confinement.rs",
        "fork, while there is one thread",
    ),
    (
        "crates/network/emulator/src/processes/supervisor/mod.rs",
        "fork, while there is one thread",
    ),
    (
        "crates/network/emulator/src/processes/supervisor/signals.rs",
        "signal masks and sigtimedwait, which rustix lacks",
    ),
    (
        "crates/network/emulator/src/processes/supervisor/supervised.rs",
        "what a command does between fork and exec",
    ),
    (
        "crates/network/emulator/src/namespaces/namespace.rs",
        "unshare, which rustix cannot know to be safe",
    ),
    (
        "crates/network/emulator/src/namespaces/offload.rs",
        "the ioctl that turns a device's offloads off",
    ),
    (
        "crates/network/emulator/src/processes/priority.rs",
        "sched_setscheduler, which rustix lacks",
    ),
    (
        "crates/network/emulator/tests/emulator/strange.rs",
        "a packet socket, and ioctls that set a device as it should not be",
    ),
    (
        "crates/http/serve/src/socket/queues.rs",
        "SIOCOUTQ, which rustix lacks",
    ),
    (
        "crates/http/serve/src/socket/handle.rs",
        "a socket that tokio holds, by its number",
    ),
    (
        "crates/http/serve/src/socket/tcp_info.rs",
        "TCP_INFO, which no crate wraps safely",
    ),
    (
        "crates/posthaste/src/commands/doctor.rs",
        "tries unshare between fork and exec",
    ),
];

/// Lines with `unsafe` as a keyword.
fn unsafe_lines(source: &Source) -> Vec<usize> {
    fn walk(tokens: TokenStream, lines: &mut Vec<usize>) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => walk(group.stream(), lines),
                TokenTree::Ident(ident) if ident == "unsafe" => {
                    lines.push(ident.span().start().line)
                }
                _ => {}
            }
        }
    }
    let tokens: TokenStream = source
        .text
        .parse()
        .unwrap_or_else(|error| panic!("{}: {error}", source.path));
    let mut lines = Vec::new();
    walk(tokens, &mut lines);
    lines
}

#[test]
fn the_list_is_of_files_at_the_boundary() {
    let sources = rust();
    for (path, _) in MAY {
        let source = sources.iter().find(|source| source.path == *path);
        let needed = source.is_some_and(|source| !unsafe_lines(source).is_empty());
        assert!(
            needed,
            "{path}: no unsafe there any more; remove it from the list in unsafety.rs"
        );
        let rule = source.and_then(Source::crate_name).and_then(crate_rule);
        assert!(
            rule.is_some_and(|rule| rule.kind != CrateKind::Pure),
            "{path}: pure crates forbid unsafe"
        );
    }
}

#[test]
fn every_unsafe_has_a_place_and_a_reason() {
    let mut findings = Vec::new();
    for source in rust() {
        let lines: Vec<&str> = source.text.lines().collect();
        for line in unsafe_lines(&source) {
            if MAY.iter().all(|(path, _)| *path != source.path) {
                findings.push(Finding::new(
                    source.line(line),
                    "unsafe outside the listed files",
                    "find a safe call (rustix has most), or list the file with its reason in unsafety.rs",
                ));
            }
            let above = &lines[line.saturating_sub(1 + REACH)..line];
            if !above
                .iter()
                .any(|text| text.contains("SAFETY:") || text.contains("# Safety"))
            {
                findings.push(Finding::new(
                    source.line(line),
                    "unsafe without a reason",
                    "say above it, after `// SAFETY:`, why this is sound",
                ));
            }
        }
    }
    expect_none(&findings);
}
