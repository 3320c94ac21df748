//! One piece of the request path, repeated, for counting instructions.
//!
//! `cargo run --release -p posthaste-compression --example cost -- scan|fields|POLICY TIMES`

use std::hint::black_box;

use posthaste_compression::{
    Accept, ClientPath, CostModel, CpuTokenBucket, Form, LoadEstimate, Media, Menu, Policy, Prefer,
    Preference, PreferenceBlock, Question, Reply, Rules, ScanResult, Steps, Wish, saves_data,
};
use posthaste_soap::EXTENSION_NAMESPACE;
use posthaste_soap::head::HeadScan;
use posthaste_soap::{Limits, Version};
use posthaste_units::{BitRate, Instant, Size, Span};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize| arguments.get(index).map(String::as_str).unwrap_or_default();
    let times = argument(1).parse().unwrap_or(1u64);
    match argument(0) {
        "scan" => scan(times),
        "fields" => (0..times).for_each(|_| {
            black_box(preference());
        }),
        policy => decide(policy.parse().expect("scan, fields or a policy"), times),
    }
}

/// An envelope of 9 KB with a header of 1 KB: addressing, a security token and our block.
fn scan(times: u64) {
    let soap = Version::Soap11.namespace();
    let token = "A".repeat(400);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><s:Envelope xmlns:s=\"{soap}\"><s:Header>\
         <a:Action xmlns:a=\"http://www.w3.org/2005/08/addressing\">urn:posthaste:bookshop/BookLite</a:Action>\
         <a:MessageID xmlns:a=\"http://www.w3.org/2005/08/addressing\">urn:uuid:6f1c2f4e</a:MessageID>\
         <w:Security xmlns:w=\"http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd\">\
         <w:BinarySecurityToken>{token}</w:BinarySecurityToken></w:Security>\
         <p:compression xmlns:p=\"{EXTENSION_NAMESPACE}\">if-possible</p:compression></s:Header><s:Body>"
    );
    eprintln!("{} bytes before the Body", text.len());
    while text.len() < 9 << 10 {
        text.push_str("<isbn>3727677562</isbn>");
    }
    text.push_str("</s:Body></s:Envelope>");
    let limits = Limits::default();
    for _ in 0..times {
        let mut scan = HeadScan::new(&limits, PreferenceBlock::default());
        scan.feed(black_box(text.as_bytes()));
        assert_eq!(
            black_box(ScanResult::from_scan(scan.head(), scan.blocks())).wish(),
            Some(Wish::IfPossible)
        );
    }
}

fn preference() -> (Accept, Preference) {
    let accept = Accept::read([black_box(&b"gzip, deflate, br, zstd"[..])]);
    let prefer = Prefer::read([black_box(&b"respond-async, compression=if-possible"[..])]);
    let saves = saves_data(black_box(None));
    let preference = Preference::from_sources(None, &accept, &prefer, saves, None, Wish::Unstated);
    (accept, preference)
}

fn decide(policy: Policy, times: u64) {
    let (accept, preference) = preference();
    let (rules, menu, costs) = (Rules::default(), Menu::default(), CostModel::default());
    let mut bucket = CpuTokenBucket::new(1);
    for tick in 0..times {
        let question = Question {
            now: Instant::from_nanos(tick * 50_000),
            preference,
            form: Form::Content,
            accept,
            reply: Reply {
                to_head: false,
                status: 200,
                length: Some(Size::from_bytes(3489)),
                media: Media::from_content_type(Some(black_box(b"text/xml; charset=utf-8"))),
                is_coded: false,
                no_transform: false,
                is_range: false,
                is_sealed: false,
            },
            rules: &rules,
            menu: &menu,
            at_hand: Steps::default(),
            estimate: LoadEstimate {
                allowance: 0.5,
                plenty: 3.0,
                busy: 0.3,
                is_high: false,
                is_known: true,
            },
            backlog: Span::ZERO,
            line: Some(ClientPath {
                rate: BitRate::per_second(20_000_000).expect("a rate"),
                rtt: Span::from_millis(40),
                window: ClientPath::FIRST_WINDOW,
            }),
            costs: &costs,
        };
        black_box(policy.decide(black_box(&question), &mut bucket));
    }
}
