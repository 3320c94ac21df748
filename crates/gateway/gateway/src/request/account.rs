//! The account of a request, by its API key or by the certificate of its connection.
//!
//! A key takes precedence. Without one, the subject of the verified certificate counts. Certificates that a proxy in
//! front of the gateway has verified do not count.

use hyper::StatusCode;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use posthaste_admission::accounts::AccountHandle;
use posthaste_gateway_config::AccountsConfig;
use posthaste_serve::Peer;
use posthaste_units::Span;

use crate::accounts::{GatewayAccounts, UnknownKey};
use crate::clock::now;
use crate::error::Rejection;
use crate::retry_after::advice;

/// Maximum length of a key, in bytes.
const LONGEST_KEY: usize = 256;

/// Name of the field that states how to authenticate (RFC 9110, section 11.6.1).
const WWW_AUTHENTICATE: &str = "www-authenticate";

/// Finds the account of a request and removes its key, unless `accounts.forward_key` is set. Errors as of [`find`].
pub(crate) fn identify(
    head: &mut Parts,
    peer: &Peer,
    client: impl FnOnce() -> String,
    config: Option<&AccountsConfig>,
    accounts: &GatewayAccounts,
) -> Result<Option<AccountHandle>, Rejection> {
    let found = find(head, peer, client, config, accounts)?;
    // Credentials of another scheme are no key, and stay.
    if let Some(config) = config
        && !config.forward_key
        && key(head, config)?.is_some()
    {
        head.headers.remove(&*config.key_field);
    }
    Ok(found)
}

/// Finds the account of a request. Rejects a wrong key with 401, too many of `client` with 429, and any unknown one with
/// 503 before the broker's accounts are known.
pub(crate) fn find(
    head: &Parts,
    peer: &Peer,
    client: impl FnOnce() -> String,
    config: Option<&AccountsConfig>,
    accounts: &GatewayAccounts,
) -> Result<Option<AccountHandle>, Rejection> {
    let Some(config) = config else {
        return Ok(None);
    };
    let wrong = |rejection| match accounts.wrong_keys.count(client(), now()) {
        Ok(()) => rejection,
        Err(wait) => too_many(wait),
    };
    let key = match key(head, config) {
        Ok(key) => key,
        Err(rejection) => return Err(wrong(rejection)),
    };
    let Some(key) = key else {
        return Ok(peer
            .subject()
            .and_then(|subject| accounts.with_subject(subject)));
    };
    let found = accounts.with_key(config, key);
    let found = found.map_err(|unknown| match unknown {
        UnknownKey::Wrong => wrong(wrong_key(config)),
        UnknownKey::NotKnownYet => Rejection::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the accounts are not known yet: try again in a second",
        ),
    })?;
    Ok(Some(found))
}

/// The key that a request shows. `None` without the field, or if `Authorization` has another scheme than Bearer. Of
/// several fields none is a key: the upstream could get one of them, or read another one.
fn key<'h>(head: &'h Parts, config: &AccountsConfig) -> Result<Option<&'h [u8]>, Rejection> {
    let mut lines = head.headers.get_all(&*config.key_field).iter();
    let Some(line) = lines.next().map(HeaderValue::as_bytes) else {
        return Ok(None);
    };
    if lines.next().is_some() {
        return Err(wrong_key(config));
    }
    let key = if config.is_bearer() {
        bearer(line)
    } else {
        Some(line.trim_ascii())
    };
    match key {
        Some(key) if !(1..=LONGEST_KEY).contains(&key.len()) => Err(wrong_key(config)),
        key => Ok(key),
    }
}

/// The token of `Bearer TOKEN` (RFC 6750, section 2.1). Schemes are case-insensitive (RFC 9110, section 11.1).
fn bearer(line: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = line.split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}

fn too_many(wait: Span) -> Rejection {
    let reason = "too many wrong keys from this client: no account has this one either";
    let mut rejection = Rejection::new(StatusCode::TOO_MANY_REQUESTS, reason);
    rejection.fields.push(("retry-after", advice(wait)));
    rejection
}

fn wrong_key(config: &AccountsConfig) -> Rejection {
    let field = &config.key_field;
    let reason = if config.is_bearer() {
        "no account has this key: send Authorization: Bearer KEY with a valid one, once".to_owned()
    } else {
        format!("no account has this key: send {field}: KEY with a valid one, once")
    };
    let mut rejection = Rejection::new(StatusCode::UNAUTHORIZED, reason);
    let challenge = "Bearer error=\"invalid_token\"".to_owned();
    rejection.fields.push((WWW_AUTHENTICATE, challenge));
    rejection
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn shown(field: &str, lines: &[&str]) -> Result<Option<Vec<u8>>, StatusCode> {
        let config = AccountsConfig {
            key_field: field.to_owned(),
            ..AccountsConfig::default()
        };
        let mut request = Request::builder();
        for line in lines {
            request = request.header(field, *line);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let key = key(&head, &config).map_err(|rejection| rejection.status)?;
        Ok(key.map(<[u8]>::to_vec))
    }

    #[test]
    fn a_key_is_a_bearer_token_or_the_whole_field() {
        let some = |key: &str| Ok(Some(key.as_bytes().to_vec()));
        assert_eq!(shown("authorization", &["Bearer pha_a"]), some("pha_a"));
        assert_eq!(shown("Authorization", &["bearer  pha_a"]), some("pha_a"));
        assert_eq!(shown("x-api-key", &["pha_a"]), some("pha_a"));
        assert_eq!(shown("authorization", &["Basic YW55"]), Ok(None));
        assert_eq!(shown("authorization", &["Bear"]), Ok(None));
        assert_eq!(shown("x-api-key", &[]), Ok(None));
    }

    #[test]
    fn several_keys_none_and_long_ones_are_wrong() {
        let wrong = Err(StatusCode::UNAUTHORIZED);
        assert_eq!(shown("x-api-key", &["pha_a", "pha_b"]), wrong);
        let hidden = ["Basic YW55", "Bearer pha_a"];
        assert_eq!(shown("authorization", &hidden), wrong);
        assert_eq!(shown("authorization", &["Bearer "]), wrong);
        assert_eq!(shown("x-api-key", &["a".repeat(257).as_str()]), wrong);
    }
}
