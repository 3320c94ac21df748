//! Position in the tokens of a script, with errors that name the line.

use posthaste_units::Span;

use super::ScriptError;
use super::lexer::{Lexeme, Token};

pub(super) struct TokenCursor {
    tokens: Vec<Lexeme>,
    next: usize,
}

impl TokenCursor {
    pub(super) fn new(tokens: Vec<Lexeme>) -> Self {
        Self { tokens, next: 0 }
    }

    pub(super) fn peek(&self) -> Option<&Token> {
        self.after(0)
    }

    /// Returns the token `count` tokens after the next one.
    pub(super) fn after(&self, count: usize) -> Option<&Token> {
        let lexeme = self.tokens.get(self.next + count);
        lexeme.map(|lexeme| &lexeme.token)
    }

    /// Line of the next token. At the end, the line after the last token.
    pub(super) fn line(&self) -> usize {
        match (self.tokens.get(self.next), self.tokens.last()) {
            (Some(lexeme), _) => lexeme.line,
            (None, Some(last)) => last.line + 1,
            (None, None) => 1,
        }
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.next += usize::from(token.is_some());
        token
    }

    pub(super) fn is_symbol(&self, symbol: char) -> bool {
        self.peek() == Some(&Token::Symbol(symbol))
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(found)) if found == word)
    }

    /// Consumes the symbol if it is next.
    pub(super) fn eat(&mut self, symbol: char) -> bool {
        let found = self.is_symbol(symbol);
        self.next += usize::from(found);
        found
    }

    /// Consumes the word if it is next.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.next += usize::from(found);
        found
    }

    /// Consumes the token if it is next.
    pub(super) fn eat_token(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.next += usize::from(found);
        found
    }

    pub(super) fn symbol(&mut self, symbol: char) -> Result<(), ScriptError> {
        if self.eat(symbol) {
            return Ok(());
        }
        Err(self.unexpected(&format!("{symbol:?}")))
    }

    pub(super) fn word(&mut self, meaning: &str) -> Result<String, ScriptError> {
        if let Some(Token::Word(word)) = self.peek().cloned() {
            self.next += 1;
            return Ok(word);
        }
        Err(self.unexpected(meaning))
    }

    /// Parses a decimal or hexadecimal number.
    pub(super) fn number<T: TryFrom<i64>>(&mut self, meaning: &str) -> Result<T, ScriptError> {
        let number = self
            .peek_number()
            .and_then(|number| T::try_from(number).ok());
        let Some(number) = number else {
            return Err(self.unexpected(meaning));
        };
        self.next += 1;
        Ok(number)
    }

    fn peek_number(&self) -> Option<i64> {
        let Some(Token::Word(word)) = self.peek() else {
            return None;
        };
        match word.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        }
    }

    /// Parses a time in seconds, exact to the nanosecond.
    pub(super) fn span(&mut self) -> Result<Span, ScriptError> {
        let text = match self.peek() {
            Some(Token::Word(text) | Token::Decimal(text)) => text,
            _ => return Err(self.unexpected("a time")),
        };
        let Some(span) = seconds(text) else {
            return Err(self.unexpected("a time in seconds"));
        };
        self.next += 1;
        Ok(span)
    }

    /// Error: `meaning` was expected instead of the next token.
    pub(super) fn unexpected(&self, meaning: &str) -> ScriptError {
        let found = match self.peek() {
            Some(token) => format!("{token:?}"),
            None => "the end".to_owned(),
        };
        ScriptError::malformed(self.line(), format!("expected {meaning}, found {found}"))
    }
}

fn seconds(text: &str) -> Option<Span> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let nanos = format!("{part:0<9}").get(..9)?.parse::<u64>().ok()?;
    let nanos = whole.checked_mul(1_000_000_000)?.checked_add(nanos)?;
    // About a day: sums of times do not overflow, and no script runs for long.
    (whole < 100_000).then_some(Span::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds(".105"), Some(Span::from_millis(105)));
        assert_eq!(seconds("2"), Some(Span::from_secs(2)));
        assert_eq!(seconds("0.000001"), Some(Span::from_micros(1)));
        assert_eq!(seconds("S"), None);
        assert_eq!(seconds("100000"), None);
        assert_eq!(seconds("99999999999999999999"), None);
    }
}
