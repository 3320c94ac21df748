//! A machine's resolv.conf: what is made of it for inside says the same of everything but resolvers.

use posthaste_emulator::relay::ResolvConf;

use crate::within;

/// Any text as resolv.conf.
pub fn resolv_conf(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let names = within("ResolvConf::read", text.len(), 16, 4 << 10, || {
        ResolvConf::read(text)
    });
    let inside = names.inside();
    let resolvers = |text: &str| {
        let of_a_resolver = |line: &&str| line.split_whitespace().next() == Some("nameserver");
        text.lines().filter(of_a_resolver).count()
    };
    assert!((1..=3).contains(&resolvers(&inside)), "{inside}");
    let others = |text: &str| text.lines().count() - resolvers(text);
    assert_eq!(others(&inside), others(text), "{inside}");
    // As for a run inside a run, whose machine is the first one's inside.
    assert_eq!(ResolvConf::read(&inside).inside(), inside);
}
