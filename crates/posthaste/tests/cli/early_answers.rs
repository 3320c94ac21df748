//! A service behind the gateway that answers before the end of the request. Requests of other clients are not affected.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Number of ordinary requests. `POSTHASTE_POSTS` overrides it.
const POSTS: u64 = 2_000;

/// Clients with ordinary requests, and clients with oversized ones.
const CLIENTS: u64 = 4;
const SENDERS: usize = 3;

/// More than the bookshop accepts. It answers after the head.
const OVERSIZED: usize = 512 << 10;

fn post(length: usize) -> String {
    format!(
        "POST /soap HTTP/1.1\r\nHost: shop\r\nContent-Type: text/xml\r\nSOAPAction: \"\"\r\nContent-Length: {length}\r\n\r\n"
    )
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).unwrap();
    stream.set_write_timeout(patience).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads one reply by its Content-Length. Returns its status, and true if it announces that it is the last.
fn reply(stream: &mut TcpStream) -> Option<(u16, bool)> {
    let mut bytes = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
            let length: usize = field("content-length: ")?.parse().ok()?;
            if body.len() >= length {
                let status = head.get(9..12)?.parse().ok()?;
                return Some((status, field("connection: close").is_some()));
            }
        }
        match stream.read(&mut piece) {
            Ok(length @ 1..) => bytes.extend_from_slice(&piece[..length]),
            _ => return None,
        }
    }
}

/// Sends oversized requests until `over`. Counts the refusals that were read.
fn send_too_much(address: SocketAddr, over: &AtomicBool, refused: &AtomicU64) {
    let body = vec![b'x'; OVERSIZED];
    while !over.load(Relaxed) {
        let mut stream = connect(address);
        let _ = stream.write_all(post(body.len()).as_bytes());
        for piece in body.chunks(16 << 10) {
            if stream.write_all(piece).is_err() {
                break;
            }
        }
        if let Some((413, _)) = reply(&mut stream) {
            refused.fetch_add(1, Relaxed);
        }
    }
}

/// Returns an ISBN of the shop.
fn isbn(address: SocketAddr) -> String {
    let mut stream = connect(address);
    let request = "GET /isbns.csv HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let mut lines = reply.lines().skip_while(|line| *line != "isbn");
    let found = lines.nth(1);
    found.expect("a list of ISBNs").to_owned()
}

/// Sends ordinary requests on one connection. Returns the number not answered with 200.
fn send(address: SocketAddr, isbn: &str, count: u64) -> u64 {
    let envelope = format!(
        "<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body>\
         <b:BookLite xmlns:b=\"urn:posthaste:bookshop\"><b:isbn>{isbn}</b:isbn></b:BookLite></e:Body></e:Envelope>"
    );
    let request = post(envelope.len()) + &envelope;
    let mut stream = connect(address);
    let mut failed = 0;
    for _ in 0..count {
        let _ = stream.write_all(request.as_bytes());
        match reply(&mut stream) {
            Some((200, false)) => {}
            other => {
                failed += u64::from(!matches!(other, Some((200, _))));
                stream = connect(address);
            }
        }
    }
    failed
}

#[test]
fn ordinary_posts_do_not_suffer_from_oversized_ones() {
    let posts = std::env::var("POSTHASTE_POSTS").ok();
    let posts = posts.map_or(POSTS, |posts| posts.parse().unwrap());
    let shop = posthaste_bookshop::start(posthaste_bookshop::BookshopConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        ..posthaste_bookshop::BookshopConfig::default()
    });
    let shop = shop.unwrap();
    let config = format!(
        "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\nupstream = [\"{}\"]\n",
        shop.addr
    );
    let config = posthaste_gateway::GatewayConfig::read(&config).unwrap();
    let gateway = posthaste_gateway::start(config).unwrap();
    let address = gateway.addr;
    let isbn = isbn(shop.addr);
    let (over, refused) = Default::default();
    let failed: u64 = std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| send_too_much(address, &over, &refused));
        }
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| scope.spawn(|| send(address, &isbn, posts / CLIENTS)))
            .collect();
        let failed = clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum();
        over.store(true, Relaxed);
        failed
    });
    let refused = refused.into_inner();
    println!("{failed} of {posts} failed beside {refused} refusals");
    assert!(refused > 0, "nobody was refused");
    assert_eq!(failed, 0, "of {posts}");
}
