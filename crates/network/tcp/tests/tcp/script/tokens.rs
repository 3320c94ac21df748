//! The words of a line, in order.

use std::str::FromStr;

use posthaste_units::Span;

/// Remaining words. Commas count as spaces.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'a> {
    rest: Vec<&'a str>,
}

impl<'a> Tokens<'a> {
    pub(super) fn split(text: &'a str) -> Self {
        let text = text.split('#').next().unwrap_or_default();
        let tokens = text.split(|c: char| c.is_whitespace() || c == ',');
        let mut rest: Vec<&str> = tokens.filter(|word| !word.is_empty()).collect();
        rest.reverse();
        Self { rest }
    }

    pub(super) fn peek(&self) -> Option<&'a str> {
        self.rest.last().copied()
    }

    pub(super) fn next(&mut self) -> Option<&'a str> {
        self.rest.pop()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Consumes the next word if it equals `word`.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        if found {
            self.next();
        }
        found
    }

    /// Parses the next word as a value, such as `a number`.
    pub(super) fn value<T: FromStr>(&mut self, subject: &str) -> Result<T, String> {
        let word = self
            .next()
            .ok_or_else(|| format!("{subject} is missing at the end"))?;
        word.parse()
            .map_err(|_| format!("{word:?} where {subject} should be"))
    }

    pub(super) fn span(&mut self) -> Result<Span, String> {
        self.value("a time such as 100ms")
    }

    /// Parses the next word if it has the form `1..1001`.
    pub(super) fn range(&mut self) -> Option<[i64; 2]> {
        let (start, end) = self.peek()?.split_once("..")?;
        let range = [start.parse().ok()?, end.parse().ok()?];
        self.next();
        Some(range)
    }

    /// Returns an error if any word is left.
    pub(super) fn end(mut self) -> Result<(), String> {
        self.next().map_or(Ok(()), |word| {
            Err(format!("{word:?} was not expected here"))
        })
    }
}
