//! Authentication of requests by bearer tokens (RFC 6750), and of people by the same tokens as passwords (RFC 7617).

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use super::BrokerHandler;
use super::problem::{Also, ProblemDetails};
use crate::token::{Grant, TokenRole};
use crate::writer::{StoreWriter, WriteError};

/// Challenge for people, whose browsers send a password.
const BASIC: &str = "Basic realm=\"posthaste broker\", charset=\"UTF-8\"";

impl BrokerHandler {
    /// The store writer. A broker that follows another has none and rejects with 403.
    pub(super) fn writer(&self) -> Result<&StoreWriter, ProblemDetails> {
        self.context.writer.as_ref().ok_or_else(|| {
            let upstream = self.context.follows.as_deref().unwrap_or_default();
            let detail = format!("this broker follows {upstream}: publish there");
            ProblemDetails::new(StatusCode::FORBIDDEN, detail)
        })
    }

    /// Authenticates the bearer of a token with this role.
    pub(super) async fn authenticate(
        &self,
        parts: &Parts,
        role: TokenRole,
    ) -> Result<Arc<Grant>, ProblemDetails> {
        self.authenticate_by(parts, role, "Bearer", "Bearer error=\"invalid_token\"")
            .await
    }

    /// Authenticates a person with an operator's token as password and any name.
    pub(super) async fn authenticate_person(
        &self,
        parts: &Parts,
    ) -> Result<Arc<Grant>, ProblemDetails> {
        self.authenticate_by(parts, TokenRole::Operator, BASIC, BASIC)
            .await
    }

    async fn authenticate_by(
        &self,
        parts: &Parts,
        role: TokenRole,
        absent: &'static str,
        invalid: &'static str,
    ) -> Result<Arc<Grant>, ProblemDetails> {
        let writer = self.writer()?;
        let refuse = |detail: String, challenge| {
            self.context.metrics.count_refused_token();
            ProblemDetails::new(StatusCode::UNAUTHORIZED, detail)
                .with(Also::Authenticate(challenge))
        };
        let token = token(parts).ok_or_else(|| refuse(needs(role), absent))?;
        let mut grant = self.context.registry.grant(&token);
        if grant.is_none() && self.context.registry.may_read_grants() {
            // Another process may have made it since the tokens were read.
            let registry = self.context.registry.clone();
            let read = writer.call(move |store| {
                registry.set_grants(store.grants()?);
                Ok(())
            });
            read.await.map_err(unstored)?;
            grant = self.context.registry.grant(&token);
        }
        let grant = grant.ok_or_else(|| {
            let detail = "unknown or revoked token";
            refuse(detail.to_owned(), invalid)
        })?;
        if grant.role != role {
            let detail = format!("this is {} token: {}", owners(grant.role), needs(role));
            return Err(ProblemDetails::new(StatusCode::FORBIDDEN, detail));
        }
        Ok(grant)
    }
}

/// Converts an error of the store writer.
pub(super) fn unstored(error: WriteError) -> ProblemDetails {
    match error {
        WriteError::Busy => {
            ProblemDetails::later("too many providers publish at once: try again later")
        }
        WriteError::Store(error) => ProblemDetails::later(format!(
            "the store cannot be written at the moment: {error}"
        )),
    }
}

/// Sentence about the token that a request needs.
fn needs(role: TokenRole) -> String {
    match role {
        TokenRole::Provider => {
            "publishing needs a provider's token: send Authorization: Bearer TOKEN".to_owned()
        }
        role => format!(
            "this needs {} token: send Authorization: Bearer TOKEN; `posthaste broker token new --role {} NAME` makes \
             one",
            owners(role),
            role.name()
        ),
    }
}

/// Possessive of a role.
const fn owners(role: TokenRole) -> &'static str {
    match role {
        TokenRole::Provider => "a provider's",
        TokenRole::Gateway => "a gateway's",
        TokenRole::Operator => "an operator's",
        TokenRole::Unknown => "a later version's",
    }
}

/// The token of a request: a bearer token, or a password.
///
/// A password only reads. A browser sends it with requests that pages of others make (RFC 6454, section 8.3), and these
/// must not change anything.
fn token(parts: &Parts) -> Option<Cow<'_, str>> {
    let field = parts.headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = field.split_once(' ')?;
    let token = token.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(Cow::Borrowed(token));
    }
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    if !reads || !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(STANDARD.decode(token).ok()?).ok()?;
    let (_, password) = pair.split_once(':')?;
    Some(Cow::Owned(password.to_owned()))
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    #[test]
    fn a_token_is_a_bearers_or_a_password() {
        for (field, expected) in [
            ("Bearer pht_a", Some("pht_a")),
            ("bearer  pht_a ", Some("pht_a")),
            ("Basic YW55OnBodF9h", Some("pht_a")),
            ("Basic YW55", None),
            ("Basic !", None),
            ("Digest pht_a", None),
            ("pht_a", None),
        ] {
            let request = Request::builder().header("authorization", field);
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(token(&parts).as_deref(), expected, "{field}");
        }
    }

    #[test]
    fn a_password_changes_nothing() {
        for (method, reads) in [
            ("GET", true),
            ("HEAD", true),
            ("POST", false),
            ("DELETE", false),
        ] {
            let request = Request::builder().method(method);
            let request = request.header("authorization", "Basic YW55OnBodF9h");
            let (parts, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(token(&parts).is_some(), reads, "{method}");
        }
    }
}
