//! Parser of system calls: `write(4, ..., 1000) = 1000`, `connect(3, ..., ...) = -1 EINPROGRESS (a note)`.

use posthaste_units::Span;

use super::ScriptError;
use super::cursor::TokenCursor;
use super::lexer::Token;
use super::script::{Expression, SystemCall};

/// Limit of nested lists and structures.
const DEEPEST: usize = 32;

/// Parses a system call that blocks `until` a time, or not.
pub(super) fn system_call(
    cursor: &mut TokenCursor,
    until: Option<Span>,
) -> Result<SystemCall, ScriptError> {
    let name = cursor.word("the name of a system call")?;
    cursor.symbol('(')?;
    let arguments = list(cursor, ')', 0)?;
    cursor.symbol('=')?;
    let result = expression(cursor, 0)?;
    let error = match cursor.peek() {
        Some(Token::Word(word)) if word.starts_with('E') => Some(cursor.word("an error")?),
        _ => None,
    };
    skip_note(cursor)?;
    Ok(SystemCall {
        name,
        arguments,
        result,
        error,
        until,
    })
}

/// Skips a note in parentheses.
fn skip_note(cursor: &mut TokenCursor) -> Result<(), ScriptError> {
    if !cursor.eat('(') {
        return Ok(());
    }
    let mut open = 1;
    while open > 0 {
        match cursor.next() {
            Some(Token::Symbol('(')) => open += 1,
            Some(Token::Symbol(')')) => open -= 1,
            Some(_) => {}
            None => return Err(cursor.unexpected("`)` of a note")),
        }
    }
    Ok(())
}

fn list(
    cursor: &mut TokenCursor,
    close: char,
    depth: usize,
) -> Result<Vec<Expression>, ScriptError> {
    let mut items = Vec::new();
    while !cursor.eat(close) {
        if !items.is_empty() {
            cursor.symbol(',')?;
        }
        items.push(expression(cursor, depth)?);
    }
    Ok(items)
}

fn expression(cursor: &mut TokenCursor, depth: usize) -> Result<Expression, ScriptError> {
    if depth > DEEPEST {
        return Err(cursor.unexpected("fewer nested lists"));
    }
    let mut value = operand(cursor, depth + 1)?;
    // Flags that are joined by `|` become one word.
    while cursor.eat('|') {
        let next = operand(cursor, depth + 1)?;
        let text = |value: &Expression| match value {
            Expression::Word(word) => word.clone(),
            other => format!("{other:?}"),
        };
        value = Expression::Word(format!("{}|{}", text(&value), text(&next)));
    }
    Ok(value)
}

fn operand(cursor: &mut TokenCursor, depth: usize) -> Result<Expression, ScriptError> {
    match cursor.peek().cloned() {
        Some(Token::Ellipsis) => {
            cursor.next();
            Ok(Expression::Ellipsis)
        }
        Some(Token::Symbol('[')) => {
            cursor.next();
            Ok(Expression::List(list(cursor, ']', depth)?))
        }
        Some(Token::Symbol('{')) => {
            cursor.next();
            Ok(Expression::List(list(cursor, '}', depth)?))
        }
        Some(Token::Symbol('-')) => {
            cursor.next();
            let number: i64 = cursor.number("a number")?;
            Ok(Expression::Number(-number))
        }
        Some(Token::Text(_)) => text(cursor),
        Some(Token::Word(word)) => named(cursor, word, depth),
        _ => Err(cursor.unexpected("an argument")),
    }
}

/// Parses adjacent strings, possibly with `...` behind them.
fn text(cursor: &mut TokenCursor) -> Result<Expression, ScriptError> {
    while matches!(cursor.peek(), Some(Token::Text(_))) {
        cursor.next();
    }
    cursor.eat_token(&Token::Ellipsis);
    Ok(Expression::Ellipsis)
}

/// Parses a number, a name, `name(...)`, `name = value` or `name(...) = value`.
fn named(cursor: &mut TokenCursor, word: String, depth: usize) -> Result<Expression, ScriptError> {
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(Expression::Number(cursor.number("a number")?));
    }
    cursor.next();
    if cursor.eat('(') {
        list(cursor, ')', depth)?;
    }
    if cursor.eat('=') {
        let value = expression(cursor, depth)?;
        return Ok(Expression::Field(word, Box::new(value)));
    }
    Ok(Expression::Word(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packetdrill::lexer;

    fn call(text: &str) -> SystemCall {
        let tokens = lexer::tokens(text).expect("tokens");
        system_call(&mut TokenCursor::new(tokens), None).expect("a system call")
    }

    #[test]
    fn results_errors_and_notes_are_distinguished() {
        let found = call("connect(3, ..., ...) = -1 EINPROGRESS (Operation (now) in progress)");
        assert_eq!(found.result, Expression::Number(-1));
        assert_eq!(found.error.as_deref(), Some("EINPROGRESS"));
        let found = call("fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0");
        assert_eq!(found.arguments[2].word(), Some("O_RDWR|O_NONBLOCK"));
    }

    #[test]
    fn a_message_is_a_list_of_fields() {
        let found = call(
            "sendmsg(4, {msg_name(...)=..., msg_iov(2)=[{..., 40}, {..., 2}], msg_flags=0}, 0) = 42",
        );
        let fields = found.arguments[1].items();
        assert!(matches!(&fields[1], Expression::Field(name, list)
            if name == "msg_iov" && list.items().len() == 2));
    }
}
