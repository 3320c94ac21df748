//! A broker on a full disk: it starts and answers lookups.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::command::{RunningShop, execute, posthaste, until};

/// Names the small disk. The test runs itself again in a namespace where it may mount one.
const DISK: &str = "POSTHASTE_SMALL_DISK";

const TEST: &str = "full_disk::a_broker_starts_on_a_full_disk_and_publishes_when_freed";

fn ask(broker: &RunningShop, method: &str, token: &str, body: &str) -> String {
    let address = broker.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{method} /v1/offers/books/ada/Gold HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

fn status(reply: &str) -> &str {
    reply.get(9..12).unwrap_or_default()
}

/// Writes until the disk is full.
fn fill(file: &Path) {
    let mut filler = std::fs::File::create(file).unwrap();
    for size in [4096, 1] {
        while filler.write_all(&vec![0; size]).is_ok() {}
    }
}

#[test]
fn a_broker_starts_on_a_full_disk_and_publishes_when_freed() {
    let Some(disk) = std::env::var_os(DISK) else {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "mount -t tmpfs -o size=1m none \"${DISK}\" && exec \"$0\" --exact {TEST} --nocapture"
        );
        let mut inside = Command::new("unshare");
        inside
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .arg(std::env::current_exe().unwrap())
            .env(DISK, folder.path());
        let output = execute(&mut inside);
        assert_eq!(output.code, Some(0), "{}\n{}", output.out, output.err);
        return;
    };
    let disk = Path::new(&disk);
    let store = format!("sqlite:{}", disk.join("offers.db").display());
    let made = execute(&mut posthaste(&[
        "broker", "token", "new", "ada", "--store", &store,
    ]));
    assert_eq!(made.code, Some(0), "{}", made.err);
    let parts = made.out.split_whitespace();
    let token = parts.into_iter().find(|word| word.starts_with("pht_"));
    let token = token.unwrap().to_owned();
    let start = || RunningShop::serve("broker", &["--listen", "127.0.0.1:0", "--store", &store]);
    let offer = |cents: u32| {
        format!(
            r#"{{"name":"Gold","expires":"2100-01-01T00:00:00Z","qos":{{"price":{{"amount":"0.{cents}","currency":"EUR"}}}}}}"#
        )
    };
    let mut broker = start();
    assert_eq!(status(&ask(&broker, "PUT", &token, &offer(40))), "201");
    // Killed, so that its last offer is only in the log.
    broker.end();
    let filler = disk.join("filler");
    fill(&filler);

    // Twice: its accesses to the store on a full disk lose nothing.
    for _ in 0..2 {
        let mut broker = start();
        let found = ask(&broker, "GET", &token, "");
        assert!(found.contains("0.40"), "{found}");
        let refused = ask(&broker, "PUT", &token, &offer(50));
        assert_eq!(status(&refused), "503", "{refused}");
        // It tries to open the store for writing every second.
        std::thread::sleep(Duration::from_millis(2500));
        assert!(ask(&broker, "GET", &token, "").contains("0.40"));
        broker.end();
    }

    let mut broker = start();
    std::fs::remove_file(&filler).unwrap();
    until("publishing", || {
        status(&ask(&broker, "PUT", &token, &offer(60))) == "204"
    });
    broker.end();
    assert!(ask(&start(), "GET", &token, "").contains("0.60"));
}
