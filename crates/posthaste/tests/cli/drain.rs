//! SIGTERM of a gateway with `drain.delay`: readiness fails, clients are served, and a second signal ends the delay.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::command::{RunningShop, signal, until};

/// The status of a GET on a new connection. `None` if the port is closed.
fn status(address: &str, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).ok()?;
    reply.split(' ').nth(1)?.parse().ok()
}

#[test]
fn clients_are_served_until_the_delay_has_passed() {
    let shop = RunningShop::open(&[]);
    let page = shop.page();
    let path = page.strip_prefix(&shop.url).unwrap();
    let upstream = shop.url.strip_prefix("http://").unwrap();
    // A free port, which the command does not print apart.
    let admin = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let admin = admin.unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let config = format!(
        "listen = \"127.0.0.1:0\"\nadmin = \"{admin}\"\ndrain.delay = \"1h\"\n[[route]]\npath = \"/\"\nupstream = [\"{upstream}\"]\n"
    );
    std::fs::write(&file, config).unwrap();
    let mut gateway = RunningShop::serve("gateway", &["--config", file.to_str().unwrap()]);
    let address = gateway.url.strip_prefix("http://").unwrap().to_owned();
    assert_eq!(status(&admin, "/healthz"), Some(200));
    signal("TERM", gateway.id());
    until("readiness fails", || {
        status(&admin, "/healthz") == Some(503)
    });
    assert_eq!(status(&address, path), Some(200));
    signal("TERM", gateway.id());
    assert_eq!(gateway.wait(), Some(0));
    assert_eq!(status(&address, path), None);
}
