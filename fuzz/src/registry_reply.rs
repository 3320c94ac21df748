//! A registry's reply: what is read of it can be saved and is told again the same, every refusal has words,
//! pages lead on.

use posthaste_broker::uddi::messages::Version;
use posthaste_broker::uddi::messages::reply::{self, ReplyError, Rest};

use crate::within;

/// Bytes that may be allocated for each byte read: an element of 20 bytes becomes some of 100 and a list that grows.
const PER_BYTE: usize = 100;

/// Bytes that may be allocated whatever the length.
const FIXED: usize = 1 << 20;

/// Longest words of a refusal: they name elements and their namespaces.
const WORDS: usize = 8 << 10;

/// Any bytes as each reply that there is, in either version.
pub fn registry_reply(bytes: &[u8]) {
    for version in [Version::V2, Version::V3] {
        let measured = || reply::services(bytes, version);
        let services = within("services", bytes.len(), PER_BYTE, FIXED, measured);
        for service in checked(services) {
            saved(
                &version.save_service("t", &service),
                "save_service",
                "serviceDetail",
                |again| {
                    assert_eq!(
                        reply::services(again, version).as_deref(),
                        Ok(std::slice::from_ref(&service))
                    );
                },
            );
        }
        for business in checked(reply::businesses(bytes, version)) {
            saved(
                &version.save_business("t", &business),
                "save_business",
                "businessDetail",
                |again| {
                    assert_eq!(
                        reply::businesses(again, version).as_deref(),
                        Ok(std::slice::from_ref(&business))
                    );
                },
            );
        }
        for tmodel in checked(reply::tmodels(bytes, version)) {
            saved(
                &version.save_tmodel("t", &tmodel),
                "save_tModel",
                "tModelDetail",
                |again| {
                    assert_eq!(
                        reply::tmodels(again, version).as_deref(),
                        Ok(std::slice::from_ref(&tmodel))
                    );
                },
            );
        }
        for page in [reply::services_found, reply::businesses_found] {
            for from in [1, 101, usize::MAX] {
                if let Some(page) = checked(page(bytes, version, from).map(Some))
                    && let Rest::From(next) = page.rest
                {
                    assert!(
                        version == Version::V3 && next > from,
                        "a page that leads nowhere"
                    );
                }
            }
        }
        let token = checked(reply::auth_token(bytes, version));
        assert_eq!(token, token.trim());
        checked(reply::registered(bytes, version));
        checked(reply::services_of(bytes, version));
    }
}

/// What was read, or nothing; why not is said shortly.
fn checked<T: Default>(read: Result<T, ReplyError>) -> T {
    read.unwrap_or_else(|error| {
        let message = error.to_string();
        assert!(!message.is_empty() && message.len() < WORDS, "{message}");
        T::default()
    })
}

/// Shows `check` the request as the reply that tells the same.
fn saved(request: &str, saved: &str, detail: &str, check: impl FnOnce(&[u8])) {
    // Written as such it is read as a line feed (XML 1.0 section 2.11).
    if request.contains('\r') {
        return;
    }
    let reply = request.replace(&format!("<{saved} "), &format!("<{detail} "));
    check(
        reply
            .replace(&format!("</{saved}>"), &format!("</{detail}>"))
            .as_bytes(),
    );
}
