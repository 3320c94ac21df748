//! An interpreter of packetdrill's script language for one endpoint: public scripts as an oracle of the TCP model.
//!
//! packetdrill (Cardwell et al., USENIX ATC 2013) runs scripts against a kernel: system calls, packets from the
//! network, and the packets that the kernel must send at given times. Here `lexer`, `cursor`, `parse`, `packet` and
//! `call` read a script, `settings` maps its shell commands to a profile, `sockets` maps system calls to an endpoint,
//! `run` runs the events in virtual time, `segments` compares packets and `assertion` evaluates Python.
//!
//! No public script lies in this repository. `PACKETDRILL_SCRIPTS=FOLDER cargo test -p posthaste-tcp --test tcp
//! public_scripts -- --ignored --nocapture` runs those of a folder and prints a line for each. The folder's scripts and
//! results are listed in `crates/network/tcp/tests/packetdrill.md`.

mod assertion;
mod call;
mod cursor;
mod lexer;
mod packet;
mod parse;
mod run;
mod script;
mod segments;
mod settings;
mod sockets;

use std::path::{Path, PathBuf};
use std::{env, fs};

use proptest::prelude::*;
use script::ScriptError;

/// Parses and runs a script. Returns the number of parts that the model cannot evaluate.
fn run_script(text: &str, folder: &Path) -> Result<usize, ScriptError> {
    run::run(&parse::script(text)?, folder)
}

/// All scripts below a folder, in order.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder that can be read") {
            let path = entry.expect("an entry that can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "pkt") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Ends of the names of scripts that differ for a known reason, in packetdrill's repository and in Linux.
const DIFFERING: &[&str] = &[
    "close-remote-fin-then-close",
    "fr-4pkt-fack-last-mss",
    "ioctl-siocinq-fin",
    "invalid_ack",
    "reset_tsval",
    "tcp_close_no_rst",
    "tcp_ooo-before-and-after-accept",
    "tcp_ooo_rcv_mss",
    "tcp_rfc5961_rst-syn-recv",
    "maxfrags",
];

#[test]
#[ignore = "needs PACKETDRILL_SCRIPTS, a folder with public scripts"]
fn public_scripts() {
    let folder = env::var_os("PACKETDRILL_SCRIPTS");
    let folder = PathBuf::from(folder.expect("set PACKETDRILL_SCRIPTS to a folder with scripts"));
    let scripts = scripts(&folder);
    assert!(!scripts.is_empty(), "no *.pkt below {}", folder.display());
    let mut counts = [0; 4];
    let mut unexpected = Vec::new();
    for path in &scripts {
        let text = fs::read_to_string(path).expect("a text");
        let name = path.strip_prefix(&folder).unwrap_or(path).display();
        let (class, message) = match run_script(&text, path.parent().unwrap_or(&folder)) {
            Ok(0) => (0, "passes".to_owned()),
            Ok(count) => (0, format!("passes, {count} not evaluated")),
            Err(error @ ScriptError::Differs { .. }) => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                if !DIFFERING.iter().any(|end| stem.ends_with(end)) {
                    unexpected.push(stem.into_owned());
                }
                (1, format!("differs: {error}"))
            }
            Err(error @ ScriptError::Unsupported { .. }) => (2, format!("does not apply: {error}")),
            Err(error @ ScriptError::Malformed { .. }) => (3, format!("malformed: {error}")),
        };
        counts[class] += 1;
        println!("{name}: {message}");
    }
    let [pass, differ, other, malformed] = counts;
    println!("{pass} pass, {differ} differ, {other} do not apply, {malformed} are malformed");
    assert_eq!(malformed, 0, "scripts that cannot be read");
    assert!(unexpected.is_empty(), "differ: {unexpected:?}");
}

/// A passive open, ten segments, and a loss that three SACKs show.
const SCRIPT: &str = "
--tolerance_usecs=4000
`sysctl -q net.ipv4.tcp_rmem=\"4096 131072 6291456\" net.ipv4.tcp_timestamps=1`
  0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
 +0 bind(3, ..., ...) = 0
 +0 listen(3, 1) = 0
+.1 < S 0:0(0) win 60000 <mss 1000,sackOK,nop,wscale 7>
 +0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 7>
+.1 < . 1:1(0) ack 1 win 400
 +0 accept(3, ..., ...) = 4
 +0 write(4, ..., 10000) = 10000
 +0 > . 1:4001(4000) ack 1
 +0 > P. 4001:10001(6000) ack 1
+.1 < . 1:1(0) ack 1 win 400 <sack 1001:2001,nop,nop>
 +0 < . 1:1(0) ack 1 win 400 <sack 1001:3001,nop,nop>
 +0 < . 1:1(0) ack 1 win 400 <sack 1001:4001,nop,nop>
 +0 > . 1:1001(1000) ack 1
 +0 %{ assert tcpi_ca_state == TCP_CA_Recovery, tcpi_ca_state; assert tcpi_sacked == 3 }%
+.1 < . 1:1(0) ack 10001 win 400
+.1 close(4) = 0
 +0 > F. 10001:10001(0) ack 1
";

fn outcome(text: &str) -> Result<usize, ScriptError> {
    run_script(text, Path::new("."))
}

#[test]
fn a_script_passes() {
    assert_eq!(outcome(SCRIPT), Ok(0));
}

/// Each change makes the script differ in one field.
#[test]
fn every_difference_is_found() {
    for (from, to, field) in [
        ("1:1001(1000)", "1:2001(2000)", "length"),
        ("> . 1:4001(4000)", "> . 2:4002(4000)", "sequence number"),
        ("> F.", "> R.", "flags"),
        ("> P. 4001", "> . 4001", "PSH"),
        ("(0) ack 1 <mss", "(0) ack 2 <mss", "acknowledgement number"),
        ("mss 1460", "mss 1461", "MSS option"),
        (
            "nop,wscale 7>\n+.1",
            "nop,wscale 8>\n+.1",
            "window scale option",
        ),
        ("nop,nop,sackOK", "nop", "SACK-permitted option"),
        (
            "1:1001(1000) ack 1",
            "1:1001(1000) ack 1 <sack 1:2>",
            "SACK blocks",
        ),
        (
            "1:1001(1000) ack 1",
            "1:1001(1000) ack 1 <TS val 1 ecr 1>",
            "timestamps option",
        ),
        ("1:1001(1000) ack 1", "1:1001(1000) ack 1 win 1", "window"),
        (" +0 > F.", "+.5~+.6 > F.", "time"),
        ("tcpi_sacked == 3", "tcpi_sacked == 2", "tcpi_sacked == 2"),
        ("10000) = 10000", "10000) = 10001", "write returns 10000"),
    ] {
        assert!(SCRIPT.contains(from), "{from:?} is not in the script");
        let text = SCRIPT.replacen(from, to, 1);
        let found = outcome(&text).expect_err(to);
        let is_difference =
            matches!(&found, ScriptError::Differs { text, .. } if text.starts_with(field));
        assert!(is_difference, "{to}: {found}");
    }
}

#[test]
fn a_missing_packet_is_found() {
    let found = outcome(&format!("{SCRIPT} +0 > . 1:1(0) ack 1"));
    let text = found
        .expect_err("no packet follows the FIN at once")
        .to_string();
    assert!(text.contains("got nothing"), "{text}");
}

#[test]
fn scripts_beyond_the_model_are_refused() {
    for (from, to) in [
        ("< S 0:0(0)", "< SEW 0:0(0)"),
        ("sackOK,nop,wscale 7>\n +0", "sackOK,FO>\n +0"),
        ("write(4, ..., 10000)", "send(4, ..., 10000, MSG_MORE)"),
        ("net.ipv4.tcp_timestamps=1", "net.ipv4.tcp_shrink_window=1"),
        ("+.1 close(4)", "+.1 splice(4)"),
        (
            "+.1 close(4)",
            "+.1 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4)",
        ),
    ] {
        assert!(SCRIPT.contains(from), "{from:?} is not in the script");
        let found = outcome(&SCRIPT.replacen(from, to, 1));
        assert!(
            matches!(found, Err(ScriptError::Unsupported { .. })),
            "{to}: {found:?}"
        );
    }
}

#[test]
fn calls_block_until_they_can_return() {
    let head = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n";
    let connects = "+.1...0.200 connect(3, ..., ...) = 0\n+0 > S 0:0(0) <...>\n
        +.1 < S. 0:0(0) ack 1 win 5792 <mss 1460>\n+0 > . 1:1(0) ack 1\n";
    assert_eq!(outcome(&format!("{head}{connects}")), Ok(0));
    let late = connects.replace("0.200", "0.400");
    let found = outcome(&format!("{head}{late}")).expect_err("it returns after 200 ms");
    assert!(found.to_string().contains("connect returns at"), "{found}");
    let unanswered = connects.split("+0 >").next().unwrap_or_default();
    let found = outcome(&format!("{head}{unanswered}")).expect_err("nobody answers");
    assert!(found.to_string().contains("never returns"), "{found}");
}

/// Pieces of scripts, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "0",
        "+0",
        "+.1",
        "+.1~+.2",
        "*",
        "...",
        "<",
        ">",
        "S",
        "S.",
        ".",
        "F.",
        "P.",
        "R",
        "-",
        "0:0(0)",
        "1:1001(1000)",
        "4294967295:4294967296(1)",
        "ack 1",
        "ack",
        "win 65535",
        "<mss 1000,sackOK,nop,wscale 7>",
        "<...>",
        "<sack 1:2 3:4 5:6 7:8 9:10>",
        "<TS val 1 ecr 0>",
        "write(4, ..., 1000) = 1000",
        "close(3) = 0",
        "socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
        "listen(3, 1) = 0",
        "accept(3, ..., ...) = 4",
        "connect(3, ..., ...) = -1 EINPROGRESS (now)",
        "read(4, ..., 99) = -1 EAGAIN",
        "{",
        "[",
        "(",
        ")",
        "=",
        "|",
        "%{ assert tcpi_snd_cwnd == 10 }%",
        "%{ x = 1; x += 2 }%",
        "`sysctl -q a.b=1`",
        "`",
        "\"",
        "--mss=1000",
        "//",
        "/*",
        "*/",
        "-1",
        "0x",
        "99999999999999999999",
        "ä",
        "\n",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.join(" "))
}

proptest! {
    #[test]
    fn no_text_makes_the_interpreter_panic(text in prop_oneof!["\\PC{0,200}", pieces()]) {
        let _ = outcome(&text);
    }

    /// A part of a script that is missing or repeated.
    #[test]
    fn no_damaged_script_makes_the_interpreter_panic(at in 0..SCRIPT.len(), len in 0usize..80, again in any::<bool>()) {
        let end = (at + len).min(SCRIPT.len());
        let middle = if again { &SCRIPT[at..end] } else { "" };
        let text = format!("{}{middle}{}", &SCRIPT[..if again { end } else { at }], &SCRIPT[end..]);
        let _ = outcome(&text);
    }
}
