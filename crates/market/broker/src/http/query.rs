//! Queries of URLs.

use std::str::FromStr;

use hyper::http::request::Parts;

use super::problem::ProblemDetails;

/// The query of a request.
pub(super) struct Query<'p>(&'p str);

impl<'p> Query<'p> {
    pub(super) fn from_parts(parts: &'p Parts) -> Self {
        Self(parts.uri.query().unwrap_or_default())
    }

    /// The first value of this name.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let mut pairs = form_urlencoded::parse(self.0.as_bytes());
        let found = pairs.find(|(key, _)| key == name);
        found.map(|(_, value)| value.into_owned())
    }

    /// The number of this name, or the usual one.
    pub(super) fn number<N: FromStr>(&self, name: &str, usual: N) -> Result<N, ProblemDetails> {
        Ok(self.parsed(name, "a number")?.unwrap_or(usual))
    }

    /// The value of this name, which is `wanted`.
    pub(super) fn parsed<T: FromStr>(
        &self,
        name: &str,
        wanted: &str,
    ) -> Result<Option<T>, ProblemDetails> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let wrong = |_| ProblemDetails::bad(format!("{name} is {text:?}: write {wanted}"));
        text.parse().map(Some).map_err(wrong)
    }
}
