//! The names of a certificate: each is a DNS name as clients ask for it, in lower case, and all of them come from the
//! certificate's own bytes.

use posthaste_serve::{certificate_names as names, certificate_subject};

use crate::within;

/// Any bytes as a certificate.
pub fn certificate_names(bytes: &[u8]) {
    subject(bytes);
    let Ok(found) = within("certificate_names", bytes.len(), 256, 16 << 10, || {
        names(bytes)
    }) else {
        return;
    };
    let length: usize = found.iter().map(String::len).sum();
    assert!(length <= bytes.len(), "{found:?}");
    for name in &found {
        assert_eq!(*name, name.to_ascii_lowercase());
        assert!((1..=253).contains(&name.len()), "{name}");
        let host = name.strip_prefix("*.").unwrap_or(name);
        let in_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        assert!(host.bytes().all(in_name), "{name}");
        assert!(
            host.split('.').all(|label| (1..=63).contains(&label.len())),
            "{name}"
        );
    }
    assert_eq!(names(bytes).as_ref(), Ok(&found));
}

/// The subject is a short line.
fn subject(bytes: &[u8]) {
    let read = within("certificate_subject", bytes.len(), 256, 16 << 10, || {
        certificate_subject(bytes)
    });
    if let Ok(Some(subject)) = read {
        assert!((1..=1024).contains(&subject.len()), "{subject}");
        assert!(!subject.contains(char::is_control), "{subject:?}");
    }
}
