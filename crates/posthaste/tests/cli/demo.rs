//! The demo as a process: start, end, and no leftovers.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::command::{execute, posthaste, signal};

/// Starts a demo with its files in a folder of its own. Returns it and the address of its page.
fn demo(folder: &tempfile::TempDir) -> (Child, String) {
    let mut demo = posthaste(&["demo", "--listen", "127.0.0.1:0"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = demo.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    let address = line.strip_prefix("listening on http://").unwrap();
    let (address, _) = address.split_once('/').unwrap();
    (demo, address.to_owned())
}

#[test]
fn a_signal_ends_it_with_an_open_page_and_leaves_nothing() {
    for name in ["INT", "TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let (mut demo, address) = demo(&folder);
        let mut page = TcpStream::connect(&address).unwrap();
        write!(page, "GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
        let mut begins = [0; 12];
        page.read_exact(&mut begins).unwrap();
        assert_eq!(&begins, b"HTTP/1.1 200");
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "its folder"
        );
        signal(name, demo.id());
        assert_eq!(demo.wait().unwrap().code(), Some(0), "{name}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{name}");
        // The stream ends and is not cut off: its last chunk is empty (RFC 9112, section 7.1).
        let mut rest = Vec::new();
        page.read_to_end(&mut rest).unwrap();
        assert!(rest.ends_with(b"0\r\n\r\n"), "{name}");
    }
}

#[test]
fn a_port_in_use_is_a_failure_with_a_remedy() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = execute(&mut posthaste(&["demo", "--listen", &address]));
    assert_eq!((output.code, &*output.out), (Some(3), ""));
    assert!(
        output.err.contains(&address) && output.err.contains("another port"),
        "{}",
        output.err
    );
}
