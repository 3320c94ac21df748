//! Servers that an agent does not obey, and the provider of TLS.

use posthaste_fleet::connection::{ServerProperties, ServerSafety, UnsafeServer};

#[test]
fn beyond_loopback_an_agent_needs_authentication_and_tls() {
    let check = |is_loopback, has_authentication, has_tls| {
        let server = ServerProperties {
            is_loopback,
            has_authentication,
            has_tls,
        };
        assert_eq!(ServerSafety::Waived.check(server), Ok(()));
        ServerSafety::Required.check(server)
    };
    assert_eq!(check(false, true, true), Ok(()));
    assert_eq!(
        check(false, false, true),
        Err(UnsafeServer::NoAuthentication)
    );
    assert_eq!(
        check(false, false, false),
        Err(UnsafeServer::NoAuthentication)
    );
    assert_eq!(check(false, true, false), Err(UnsafeServer::NoTls));
    for (has_authentication, has_tls) in [(false, false), (true, false), (false, true)] {
        assert_eq!(check(true, has_authentication, has_tls), Ok(()));
    }
}

#[test]
fn refusals_name_the_remedy() {
    for refusal in [UnsafeServer::NoAuthentication, UnsafeServer::NoTls] {
        let text = refusal.to_string();
        assert!(
            text.contains("deploy/nats.conf") && text.contains("--nats-insecure"),
            "{text}"
        );
    }
}

/// async-nats panics if a second provider of TLS is linked and none is installed.
#[test]
fn ring_is_the_only_provider_of_tls() {
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../Cargo.lock");
    let lock = std::fs::read_to_string(lock).unwrap();
    assert!(lock.contains("\nname = \"ring\"\n"));
    assert!(
        !lock.contains("aws-lc"),
        "a dependency has brought aws-lc-rs: turn its feature off"
    );
}
