//! `[accounts]`: identities of clients, and budgets from which they pay.

use std::collections::HashSet;
use std::path::PathBuf;

use http::header::HeaderName;
use posthaste_admission::Amount;
use posthaste_admission::accounts::Definition;
use posthaste_broker_client::accounts::{KeyDigest, fault_of_account_name, fault_of_subject};
use posthaste_serve::ConfigError;
use posthaste_units::Span;
use schemars::JsonSchema;
use serde::Deserialize;

/// Name of the field with a bearer token.
const AUTHORIZATION: &str = "authorization";

/// Shortest interval of reports.
const SHORTEST: Span = Span::from_millis(10);

/// Accounts of clients.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Accounts")]
pub struct AccountsConfig {
    /// Header field with the API key. In `authorization` the key follows `Bearer`; any other field has the key alone.
    /// Requests without it are identified by their certificate, or not at all. A wrong key is answered with 401.
    pub key_field: String,
    /// Forward the field with the key to the upstream.
    pub forward_key: bool,
    /// Interval of reports to the broker. At least 10 ms.
    pub every: Span,
    /// Maximum money of each account that is charged and not yet acknowledged by the broker, in the currency of the
    /// prices. A gateway that is killed loses at most this much of each account, and each further gateway of an account
    /// can exceed its budget by as much. Prices above it cannot be paid.
    pub unreported: Amount,
    /// Broker that keeps the budgets. Without this table no account has a budget.
    pub broker: Option<AccountsBroker>,
    /// Accounts without a budget.
    #[serde(rename = "account")]
    pub accounts: Vec<ConfiguredAccount>,
}

/// A broker with budgets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountsBroker {
    /// URL of the broker.
    pub url: String,
    /// File with a gateway's token, made by `posthaste broker token new --role gateway NAME`.
    pub token: PathBuf,
}

/// An account without a budget.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfiguredAccount {
    /// Name: a letter, then up to 63 letters, digits, `-`, `_` or `.`. An account of the broker with this name is
    /// ignored.
    pub name: String,
    /// SHA-256 digest of its API key, as written by `printf %s KEY | sha256sum`.
    #[schemars(with = "Option<String>", regex(pattern = "^[0-9a-fA-F]{64}$"))]
    pub key_sha256: Option<KeyDigest>,
    /// Subject of its certificate (RFC 4514), as shown by `openssl x509 -noout -subject -nameopt RFC2253`. Only with
    /// `tls.client_ca`.
    pub certificate: Option<String>,
}

impl Default for AccountsConfig {
    fn default() -> Self {
        Self {
            key_field: AUTHORIZATION.to_owned(),
            forward_key: false,
            every: Span::from_secs(1),
            unreported: Amount::from_micros(1_000_000),
            broker: None,
            accounts: Vec::new(),
        }
    }
}

impl AccountsConfig {
    /// True if the key follows `Bearer` in its field.
    pub fn is_bearer(&self) -> bool {
        self.key_field.eq_ignore_ascii_case(AUTHORIZATION)
    }

    /// The accounts without a budget.
    pub fn definitions(&self) -> Vec<Definition> {
        let accounts = self.accounts.iter();
        let definitions = accounts.map(|account| Definition {
            name: account.name.clone(),
            key: account.key_sha256.map(|digest| digest.0),
            subject: account.certificate.clone(),
            budget: None,
            is_closed: false,
        });
        definitions.collect()
    }

    /// Settings that only a restart can change.
    pub fn fixed(&self) -> (Option<&AccountsBroker>, Span, Amount) {
        (self.broker.as_ref(), self.every, self.unreported)
    }

    pub(crate) fn check(&self, has_prices: bool) -> Result<(), ConfigError> {
        let wrong = |reason: String| Err(ConfigError::new(reason));
        if self.key_field.parse::<HeaderName>().is_err() {
            let field = &self.key_field;
            return wrong(format!(
                "accounts.key_field: {field:?} is not the name of a header field"
            ));
        }
        if self.every < SHORTEST {
            return wrong(format!("accounts.every is at least {SHORTEST}"));
        }
        if self.unreported == Amount::ZERO {
            return wrong(
                "accounts.unreported is above 0: without it nothing can be charged".to_owned(),
            );
        }
        if has_prices && self.broker.is_none() {
            return wrong(
                "protection.policy = \"prices\" with [accounts] needs accounts.broker: otherwise no client can pay; write \
                 broker = { url = \"http://127.0.0.1:8090\", token = \"FILE\" }, or leave out [accounts]"
                    .to_owned(),
            );
        }
        let (mut names, mut keys, mut subjects) = (HashSet::new(), HashSet::new(), HashSet::new());
        for account in &self.accounts {
            account.check()?;
            let name = &account.name;
            let key_is_new = account.key_sha256.is_none_or(|key| keys.insert(key));
            let subject = account.certificate.as_deref();
            let subject_is_new = subject.is_none_or(|subject| subjects.insert(subject));
            if !names.insert(name) || !key_is_new || !subject_is_new {
                return wrong(format!(
                    "accounts.account {name:?} has the name, key or certificate of another: give each its own"
                ));
            }
        }
        Ok(())
    }
}

impl ConfiguredAccount {
    fn check(&self) -> Result<(), ConfigError> {
        let wrong = |reason: String| Err(ConfigError::new(format!("accounts.account: {reason}")));
        if let Some(fault) = fault_of_account_name(&self.name) {
            return wrong(fault);
        }
        if let Some(fault) = self.certificate.as_deref().and_then(fault_of_subject) {
            return wrong(format!("{:?}: {fault}", self.name));
        }
        if self.key_sha256.is_none() && self.certificate.is_none() {
            let name = &self.name;
            return wrong(format!(
                "nothing identifies {name:?}: write key_sha256, certificate or both"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::GatewayConfig;

    fn read(accounts: &str) -> Result<GatewayConfig, String> {
        let text = format!(
            "listen = \":80\"\n[[route]]\npath = \"/\"\nupstream = [\"127.0.0.1:9000\"]\n{accounts}"
        );
        GatewayConfig::read(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn invalid_or_ambiguous_accounts_are_refused() {
        let account = |keys: &str| format!("[accounts]\n[[accounts.account]]\n{keys}\n");
        let key = format!("key_sha256 = \"{}\"", "0a".repeat(32));
        let two = account(&format!("name = \"a\"\n{key}"))
            + &format!("[[accounts.account]]\nname = \"b\"\n{key}\n");
        for (text, message) in [
            (account("name = \"a\""), "nothing identifies \"a\""),
            (
                account(&format!("name = \"10.0.0.1\"\n{key}")),
                "not a name of an account",
            ),
            (
                account("name = \"a\"\nkey_sha256 = \"secret\""),
                "64 hexadecimal digits",
            ),
            (
                account("name = \"a\"\ncertificate = \"\""),
                "not the subject",
            ),
            (two, "\"b\" has the name, key or certificate of another"),
            (
                "[accounts]\nkey_field = \"a b\"".to_owned(),
                "not the name of a header field",
            ),
            ("[accounts]\nevery = \"1ms\"".to_owned(), "at least 10ms"),
            ("[accounts]\nunreported = \"0\"".to_owned(), "above 0"),
            (
                "[protection]\npolicy = \"prices\"\n[accounts]".to_owned(),
                "needs accounts.broker",
            ),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
            assert!(!error.contains("secret\""), "{error}");
        }
        read(&account(&format!("name = \"a\"\n{key}"))).unwrap();
    }
}
