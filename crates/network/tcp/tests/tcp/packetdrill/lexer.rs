//! Tokens of packetdrill's script language, each with its line.

use super::ScriptError;

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A name, or an integer: letters, digits and underscores.
    Word(String),
    /// A number with a decimal point.
    Decimal(String),
    /// `"text"`, without the quotation marks.
    Text(String),
    /// A shell command between back quotes.
    Shell(String),
    /// Python between `%{` and `}%`.
    Code(String),
    /// `--name` of an option.
    Flag(String),
    /// `...`.
    Ellipsis,
    /// Any other character.
    Symbol(char),
}

/// A token and its line number, from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    pub(super) line: usize,
}

/// Splits a script into tokens. Comments and white space are dropped.
pub(super) fn tokens(text: &str) -> Result<Vec<Lexeme>, ScriptError> {
    let mut lexer = Lexer {
        rest: text,
        line: 1,
    };
    let mut found = Vec::new();
    loop {
        lexer.skip_blank()?;
        let line = lexer.line;
        let Some(token) = lexer.token()? else {
            return Ok(found);
        };
        found.push(Lexeme { token, line });
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Lexer<'a> {
    /// Consumes `bytes` bytes and returns them.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn skip_blank(&mut self) -> Result<(), ScriptError> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.take(blank);
            if self.rest.starts_with("//") {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.take(end);
            } else if self.rest.starts_with("/*") {
                self.enclosed("/*", "*/")?;
            } else {
                return Ok(());
            }
        }
    }

    /// Consumes from `open` to `close` and returns the text between them.
    fn enclosed(&mut self, open: &str, close: &str) -> Result<&'a str, ScriptError> {
        let line = self.line;
        self.take(open.len());
        let Some(end) = self.rest.find(close) else {
            let text = format!("{open} has no {close}: add it");
            return Err(ScriptError::malformed(line, text));
        };
        let text = self.take(end);
        self.take(close.len());
        Ok(text)
    }

    fn token(&mut self) -> Result<Option<Token>, ScriptError> {
        let Some(first) = self.rest.chars().next() else {
            return Ok(None);
        };
        let token = if self.rest.starts_with("%{") {
            Token::Code(self.enclosed("%{", "}%")?.to_owned())
        } else if first == '`' {
            Token::Shell(self.enclosed("`", "`")?.to_owned())
        } else if first == '"' {
            Token::Text(self.enclosed("\"", "\"")?.to_owned())
        } else if self.rest.starts_with("...") {
            self.take(3);
            Token::Ellipsis
        } else if let Some(length) = decimal_length(self.rest) {
            Token::Decimal(self.take(length).to_owned())
        } else if let Some(name) = self.rest.strip_prefix("--").filter(|_| self.begins_flag()) {
            let length = word_length(name);
            Token::Flag(self.take(2 + length)[2..].to_owned())
        } else if word_length(self.rest) > 0 {
            let length = word_length(self.rest);
            Token::Word(self.take(length).to_owned())
        } else {
            self.take(first.len_utf8());
            Token::Symbol(first)
        };
        Ok(Some(token))
    }

    fn begins_flag(&self) -> bool {
        self.rest[2..].starts_with(|c: char| c.is_ascii_alphabetic())
    }
}

fn word_length(text: &str) -> usize {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}

/// Length of a number with a decimal point: `.1` or `0.25`. `S.` and `0...` are none.
fn decimal_length(text: &str) -> Option<usize> {
    let is_digit = |c: char| c.is_ascii_digit();
    let whole = text.find(|c| !is_digit(c))?;
    let digits = text[whole..].strip_prefix('.')?;
    let length = digits.find(|c| !is_digit(c)).unwrap_or(digits.len());
    (length > 0).then_some(whole + 1 + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Token> {
        let tokens = tokens(text).expect("a script without errors");
        tokens.into_iter().map(|lexeme| lexeme.token).collect()
    }

    fn word(text: &str) -> Token {
        Token::Word(text.to_owned())
    }

    fn decimal(text: &str) -> Token {
        Token::Decimal(text.to_owned())
    }

    #[test]
    fn times_and_flags_are_distinguished() {
        let plus = Token::Symbol('+');
        let expected = [plus.clone(), word("0"), Token::Ellipsis, decimal("0.200")];
        assert_eq!(found("+0...0.200"), expected);
        let expected = [plus, decimal(".1"), Token::Symbol('<'), word("S")];
        assert_eq!(found("+.1 < S"), expected);
        assert_eq!(found("S. 5"), [word("S"), Token::Symbol('.'), word("5")]);
    }

    #[test]
    fn lines_are_counted_through_comments() {
        let found = tokens("// one\n/* two\nthree */ four\n%{ five\n}%\nsix").expect("no errors");
        let lines: Vec<usize> = found.iter().map(|lexeme| lexeme.line).collect();
        assert_eq!(lines, [3, 4, 6]);
    }

    #[test]
    fn an_open_comment_names_its_line() {
        let error = tokens("\n/* never closed").expect_err("an error");
        assert!(error.to_string().starts_with("line 2: "), "{error}");
    }
}
