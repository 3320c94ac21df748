//! A name server whose answers the test changes.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// A name server for UDP on a port of its own. It runs until the process ends.
pub(crate) struct TestNameServer {
    pub(crate) address: SocketAddr,
    answers: Arc<Mutex<BTreeMap<String, Answer>>>,
    queries: Arc<AtomicUsize>,
}

/// The answer to queries for a name.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Addresses with their time to live, in seconds.
    Addresses(u32, Vec<IpAddr>),
    /// The addresses of another name, each step with its time to live.
    Alias(u32, String),
    /// Only an error code, such as 2 for SERVFAIL or 3 for NXDOMAIN.
    Code(u8),
    /// These addresses, and an error for the other address family.
    Half(u32, Vec<IpAddr>),
    /// These addresses, with the error code for a name that does not exist.
    Denied(u32, Vec<IpAddr>),
    /// The addresses of the name, and after them those of another name.
    Foreign(u32, Vec<IpAddr>, String, Vec<IpAddr>),
    /// No answer.
    Silence,
    /// The flag TC and no record. There is no server for TCP.
    Truncated,
    /// These bytes after the number of the query.
    Bytes(Vec<u8>),
}

/// A query type: A or AAAA.
const A: u16 = 1;
const AAAA: u16 = 28;
const CNAME: u16 = 5;

impl TestNameServer {
    /// Starts with an answer for `name`. Other names do not exist.
    pub(crate) fn start(name: &str, answer: Answer) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let answers = Arc::<Mutex<BTreeMap<String, Answer>>>::default();
        let queries = Arc::<AtomicUsize>::default();
        let server = Self {
            address,
            answers: answers.clone(),
            queries: queries.clone(),
        };
        server.set(name, answer);
        std::thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut query) {
                let query = &query[..length];
                let Some((name, kind, end)) = question(query) else {
                    continue;
                };
                queries.fetch_add(1, SeqCst);
                if let Some(reply) = reply(&answers.lock().unwrap(), query, &name, kind, end) {
                    let _ = socket.send_to(&reply, client);
                }
            }
        });
        server
    }

    /// Changes the answer for `name`, in lower case and without the final dot.
    pub(crate) fn set(&self, name: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(name.to_owned(), answer);
    }

    /// Queries so far. A lookup has two.
    pub(crate) fn queries(&self) -> usize {
        self.queries.load(SeqCst)
    }
}

/// Reads the question of a query: its name, its type and its end.
fn question(query: &[u8]) -> Option<(String, u16, usize)> {
    let (mut at, mut labels) = (12, Vec::new());
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        let label = query.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).to_lowercase());
        at += length;
    }
    let kind = u16::from_be_bytes(query.get(at..at + 2)?.try_into().ok()?);
    Some((labels.join("."), kind, at + 4))
}

/// Builds the reply to a query (RFC 1035, section 4).
fn reply(
    answers: &BTreeMap<String, Answer>,
    query: &[u8],
    name: &str,
    kind: u16,
    end: usize,
) -> Option<Vec<u8>> {
    let (mut flags, mut code, mut records) = (0x80, 0, Vec::new());
    // Names below point to the question.
    let mut owner = vec![0xc0, 12];
    let mut current = name.to_owned();
    loop {
        match answers.get(&current).cloned().unwrap_or(Answer::Code(3)) {
            Answer::Addresses(ttl, list) => records.extend(addresses(&owner, kind, ttl, list)),
            Answer::Half(ttl, list) => {
                let list: Vec<_> = list
                    .into_iter()
                    .filter(|address| type_of(address) == kind)
                    .collect();
                code = if list.is_empty() { 2 } else { 0 };
                let list = list.into_iter();
                records.extend(list.map(|address| record(&owner, kind, ttl, &octets(address))));
            }
            Answer::Denied(ttl, list) => {
                code = 3;
                records.extend(addresses(&owner, kind, ttl, list));
            }
            Answer::Foreign(ttl, list, other, others) => {
                records.extend(addresses(&owner, kind, ttl, list));
                records.extend(addresses(&encoded(&other), kind, ttl, others));
            }
            Answer::Alias(ttl, other) => {
                let target = encoded(&other);
                records.push(record(&owner, CNAME, ttl, &target));
                (owner, current) = (target, other);
                continue;
            }
            Answer::Code(error) => code = error,
            Answer::Silence => return None,
            Answer::Truncated => flags |= 0x02,
            Answer::Bytes(bytes) => return Some([&query[..2], &bytes].concat()),
        }
        break;
    }
    let mut reply = query[..2].to_vec();
    // Recursion desired and available.
    reply.extend([flags | 0x01, 0x80 | code]);
    let count = records.len() as u16;
    for count in [1, count, 0, 0] {
        reply.extend(count.to_be_bytes());
    }
    reply.extend(&query[12..end]);
    reply.extend(records.concat());
    Some(reply)
}

/// The records of the addresses of one type.
fn addresses(owner: &[u8], kind: u16, ttl: u32, list: Vec<IpAddr>) -> Vec<Vec<u8>> {
    let list = list.into_iter().filter(|address| type_of(address) == kind);
    list.map(|address| record(owner, kind, ttl, &octets(address)))
        .collect()
}

fn type_of(address: &IpAddr) -> u16 {
    if address.is_ipv4() { A } else { AAAA }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn encoded(name: &str) -> Vec<u8> {
    let labels = name.split('.');
    let mut encoded: Vec<u8> = labels
        .flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat())
        .collect();
    encoded.push(0);
    encoded
}

fn record(owner: &[u8], kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u16).to_be_bytes();
    [
        owner,
        &kind.to_be_bytes(),
        &[0, 1],
        &ttl.to_be_bytes(),
        &length,
        data,
    ]
    .concat()
}
