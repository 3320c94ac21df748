//! Names of QUIC packets in traces, from the handshakes of quinn with itself.

use std::collections::BTreeMap;
use std::path::Path;

use super::{folder, net, own, users};
use crate::command::execute;

/// Names of the UDP datagrams of each connection in a trace (CSV), with their directions, in order of arrival.
fn names(trace: &Path) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for line in csv::Reader::from_path(trace).unwrap().deserialize() {
        let line: BTreeMap<String, String> = line.unwrap();
        // Without ICMP: a port is closed once its connection has ended.
        if !line["flow"].starts_with("udp ") {
            continue;
        }
        let name = format!("{} {}", line["direction"], line["what"]);
        found
            .entry(line["connection"].clone())
            .or_default()
            .push(name);
    }
    found
}

/// A certificate of the host 10.0.0.2 and its key, as the options of a bookshop.
pub(super) fn certificate(folder: &Path) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let wanted = rcgen::CertificateParams::new(["10.0.0.2".to_owned()]).unwrap();
    let made = wanted.self_signed(&key).unwrap();
    let [cert_file, key_file] = ["cert.pem", "key.pem"].map(|name| folder.join(name));
    std::fs::write(&cert_file, made.pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    format!(
        "--cert {} --key {}",
        cert_file.display(),
        key_file.display()
    )
}

/// Both ends clear the fixed bit of half of the packets that follow the client's first one (RFC 9287).
#[test]
fn every_datagram_of_a_quic_connection_is_named_by_its_packets() {
    for user in users() {
        let folder = folder();
        let [table, ladder] = ["trace.csv", "trace.txt"].map(|name| folder.path().join(name));
        let posthaste = own(*user);
        let server = format!(
            "{posthaste} bookshop --listen 10.0.0.2:8443 --http3 {}",
            certificate(folder.path())
        );
        let load = format!(
            "{posthaste} load https://10.0.0.2:8443/ --http 3 --insecure --connection new --rate 20/s --duration 500ms \
             --connect-timeout 30s"
        );
        let mut run = net(*user, &["--delay", "5ms", "--server", &server]);
        run.arg("--trace").arg(&table).arg("--trace").arg(&ladder);
        let run = execute(run.args(["--", "sh", "-c", &load]));
        assert_eq!(run.code, Some(0), "{}", run.err);
        let found = names(&table);
        assert_eq!(found.len(), 10, "a connection for each request");
        for names in found.values() {
            let has = |name: &str| names.iter().any(|found| found.starts_with(name));
            assert_eq!(names[0], "up Initial");
            assert!(has("down Initial+Handshake"), "{names:?}");
            // A client on a busy machine sends its request in the datagram that ends the handshake.
            let asks = |name: &String| name.starts_with("up ") && name.ends_with("1-RTT");
            assert!(names.iter().any(asks) && has("down 1-RTT"), "{names:?}");
            assert!(!has("up udp") && !has("down udp"), "{names:?}");
        }
        let ladder = std::fs::read_to_string(&ladder).unwrap();
        assert!(ladder.contains(" Initial+Handshake"), "{ladder}");
        assert!(!ladder.contains(" udp"), "{ladder}");
    }
}
