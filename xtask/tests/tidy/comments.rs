//! Comments of Rust source, apart from the code. A small lexer: strings and characters are neither of the two.

/// Kinds of comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommentKind {
    /// `///`, documentation of the next item.
    Outer,
    /// `//!`, documentation of the enclosing module.
    Inner,
    /// Everything else: `//`, `////` and the lines of `/* */`.
    Plain,
}

/// One line of a comment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    /// Counted from one.
    pub(crate) line: usize,
    pub(crate) kind: CommentKind,
    /// The text behind the slashes.
    pub(crate) text: String,
}

/// Consecutive lines of documentation for one item.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Doc {
    /// The first line, counted from one.
    pub(crate) line: usize,
    pub(crate) lines: Vec<String>,
}

/// A source file in two parts.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) comments: Vec<Comment>,
    /// The code without comments and without the content of strings. Line breaks are kept.
    pub(crate) code: String,
}

impl Parts {
    pub(crate) fn from_text(text: &str) -> Self {
        let mut parts = Self::default();
        let mut rest = text;
        let mut line = 1;
        while !rest.is_empty() {
            let length = parts.token(rest, line);
            let (token, after) = rest.split_at(length);
            line += token.matches('\n').count();
            rest = after;
        }
        parts
    }

    /// Blocks of documentation, in order.
    pub(crate) fn docs(&self) -> Vec<Doc> {
        let mut docs: Vec<Doc> = Vec::new();
        let mut last = None;
        for comment in &self.comments {
            if comment.kind == CommentKind::Plain {
                continue;
            }
            let follows = last == Some((comment.line - 1, comment.kind));
            last = Some((comment.line, comment.kind));
            match docs.last_mut().filter(|_| follows) {
                Some(doc) => doc.lines.push(comment.text.clone()),
                None => docs.push(Doc {
                    line: comment.line,
                    lines: vec![comment.text.clone()],
                }),
            }
        }
        docs
    }

    /// Comments outside fenced code.
    pub(crate) fn prose(&self) -> Vec<&Comment> {
        let mut in_code = false;
        let mut last = 0;
        let mut prose = Vec::new();
        for comment in &self.comments {
            in_code &= comment.line == last + 1;
            last = comment.line;
            if comment.text.trim_start().starts_with("```") {
                in_code = !in_code;
            } else if !in_code {
                prose.push(comment);
            }
        }
        prose
    }

    /// Adds the first token of `rest` to its part and returns its length in bytes.
    fn token(&mut self, rest: &str, line: usize) -> usize {
        if rest.starts_with("//") {
            return self.line_comment(rest, line);
        }
        if rest.starts_with("/*") {
            return self.block_comment(rest, line);
        }
        // A letter behind another letter does not start a raw string, as in `for"`, and `r#type` is a name.
        let is_inside_name = self.code.ends_with(is_name_part);
        let literal = if is_inside_name { None } else { raw(rest) }
            .or_else(|| string(rest))
            .or_else(|| character(rest));
        let length = literal.unwrap_or_else(|| rest.chars().next().map_or(0, char::len_utf8));
        match literal {
            Some(_) => {
                let breaks = rest[..length].matches('\n').count();
                self.code.push_str("\"\"");
                self.code.extend(std::iter::repeat_n('\n', breaks));
            }
            None => self.code.push_str(&rest[..length]),
        }
        length
    }

    fn line_comment(&mut self, rest: &str, line: usize) -> usize {
        let length = rest.find('\n').unwrap_or(rest.len());
        let text = &rest[2..length];
        let (kind, text) = match text.chars().next() {
            Some('/') if !text.starts_with("//") => (CommentKind::Outer, &text[1..]),
            Some('!') => (CommentKind::Inner, &text[1..]),
            _ => (CommentKind::Plain, text),
        };
        self.comments.push(Comment {
            line,
            kind,
            text: text.to_owned(),
        });
        length
    }

    fn block_comment(&mut self, rest: &str, line: usize) -> usize {
        let mut depth = 0;
        let mut length = 0;
        while length < rest.len() {
            let here = &rest[length..];
            if here.starts_with("/*") {
                depth += 1;
                length += 2;
            } else if here.starts_with("*/") {
                depth -= 1;
                length += 2;
                if depth == 0 {
                    break;
                }
            } else {
                length += here.chars().next().map_or(1, char::len_utf8);
            }
        }
        for (line, text) in (line..).zip(rest[..length].lines()) {
            self.code.push(if line > 1 { '\n' } else { ' ' });
            self.comments.push(Comment {
                line,
                kind: CommentKind::Plain,
                text: text.to_owned(),
            });
        }
        length
    }
}

pub(crate) fn is_name_part(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Length of the raw string at the start of `rest`.
fn raw(rest: &str) -> Option<usize> {
    let behind = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    let behind = behind.strip_prefix('r')?;
    let hashes = behind.len() - behind.trim_start_matches('#').len();
    let content = behind[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = content
        .find(&close)
        .map_or(content.len(), |at| at + close.len());
    Some(rest.len() - content.len() + end)
}

/// Length of the string at the start of `rest`.
fn string(rest: &str) -> Option<usize> {
    let content = rest.strip_prefix('"')?;
    let mut is_escaped = false;
    for (at, character) in content.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return Some(1 + at + 1),
            _ => {}
        }
    }
    Some(rest.len())
}

/// Length of the character literal at the start of `rest`. A lifetime is not one.
fn character(rest: &str) -> Option<usize> {
    let content = rest.strip_prefix('\'')?;
    if let Some(escape) = content.strip_prefix('\\') {
        let first = escape.chars().next()?.len_utf8();
        let end = escape[first..].find('\'')?;
        return Some(2 + first + end + 1);
    }
    let first = content.chars().next()?.len_utf8();
    content[first..].starts_with('\'').then_some(1 + first + 1)
}

#[test]
fn comments_are_told_from_strings_and_characters() {
    let text = "let a = \"// no\"; // yes\nlet b = r#\"/// \" no\n// no\"#; /// doc\nlet c = '\"'; // yes too\n\
                fn f<'a>(x: &'a str) {} // last\nlet d = b'\\''; //// plain\n";
    let parts = Parts::from_text(text);
    let found: Vec<(usize, CommentKind, &str)> = parts
        .comments
        .iter()
        .map(|comment| (comment.line, comment.kind, comment.text.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (1, CommentKind::Plain, " yes"),
            (3, CommentKind::Outer, " doc"),
            (4, CommentKind::Plain, " yes too"),
            (5, CommentKind::Plain, " last"),
            (6, CommentKind::Plain, "// plain"),
        ]
    );
    assert!(!parts.code.contains("no") && !parts.code.contains("yes"));
    assert_eq!(parts.code.matches('\n').count(), text.matches('\n').count());
}

#[test]
fn block_comments_nest() {
    let parts = Parts::from_text("fn a() {} /* one /* two\n*/ three */ fn b() {}");
    assert_eq!(parts.comments.len(), 2);
    assert_eq!(parts.comments[1].line, 2);
    assert!(parts.code.contains("fn b") && !parts.code.contains("three"));
}

#[test]
fn docs_are_blocks_of_one_item() {
    let parts = Parts::from_text(
        "//! File.\n//!\n//! More.\n\n/// Type.\nstruct A {\n    /// One.\n    /// Two.\n    a: u8 }\n",
    );
    let docs: Vec<(usize, usize)> = parts
        .docs()
        .iter()
        .map(|doc| (doc.line, doc.lines.len()))
        .collect();
    assert_eq!(docs, [(1, 3), (5, 1), (7, 2)]);
    assert_eq!(
        Parts::from_text("//! File.\n/// Item.\nfn a() {}")
            .docs()
            .len(),
        2
    );
}

#[test]
fn fenced_code_is_no_prose() {
    let text = "/// One.\n/// ```\n/// let two = 2;\n/// ```\n/// Three.\nfn a() {}\n/// ```\nfn b() {}\n// Four.\n";
    let parts = Parts::from_text(text);
    let lines: Vec<usize> = parts.prose().iter().map(|comment| comment.line).collect();
    assert_eq!(lines, [1, 5, 9]);
}
