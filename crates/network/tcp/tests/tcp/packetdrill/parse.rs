//! Parser of scripts: options, times, and the kind of each event.

use posthaste_units::Span;

use super::cursor::TokenCursor;
use super::lexer::{self, Token};
use super::script::{Action, EventTime, PacketdrillScript, ScriptEvent, ShellLines};
use super::{ScriptError, call, packet};

/// Parses a script. An error names the line.
pub(super) fn script(text: &str) -> Result<PacketdrillScript, ScriptError> {
    let mut cursor = TokenCursor::new(lexer::tokens(text)?);
    let mut script = PacketdrillScript::default();
    while let Some(Token::Flag(name)) = cursor.peek().cloned() {
        cursor.next();
        script.options.push((name, option_value(&mut cursor)?));
    }
    while let Some(Token::Shell(text)) = cursor.peek().cloned() {
        let line = cursor.line();
        cursor.next();
        script.setup.push(ShellLines { line, text });
    }
    while let Some(next) = cursor.peek() {
        // A shell command may follow the last event without a time.
        if matches!(next, Token::Shell(_)) && cursor.after(1).is_none() {
            break;
        }
        script.events.push(event(&mut cursor)?);
    }
    Ok(script)
}

/// Value of an option: the rest of its line.
fn option_value(cursor: &mut TokenCursor) -> Result<String, ScriptError> {
    let line = cursor.line();
    if !cursor.eat('=') {
        return Ok(String::new());
    }
    let mut value = String::new();
    while cursor.line() == line {
        match cursor.next() {
            Some(Token::Word(text) | Token::Decimal(text) | Token::Text(text)) => value += &text,
            Some(Token::Symbol(symbol)) => value.push(symbol),
            _ => return Err(cursor.unexpected("the value of an option")),
        }
    }
    Ok(value)
}

fn event(cursor: &mut TokenCursor) -> Result<ScriptEvent, ScriptError> {
    let line = cursor.line();
    let time = event_time(cursor)?;
    let until = if cursor.eat_token(&Token::Ellipsis) {
        Some(cursor.span()?)
    } else {
        None
    };
    let action = match cursor.peek().cloned() {
        Some(Token::Symbol(direction @ ('<' | '>'))) => {
            cursor.next();
            Action::Packet(packet::packet(cursor, direction == '<')?)
        }
        Some(Token::Shell(text)) => {
            cursor.next();
            Action::Shell(text)
        }
        Some(Token::Code(text)) => {
            cursor.next();
            Action::Code(text)
        }
        Some(Token::Word(_)) => Action::Call(call::system_call(cursor, until)?),
        _ => return Err(cursor.unexpected("a packet, a system call, a command or code")),
    };
    let sent = matches!(&action, Action::Packet(packet) if !packet.inbound);
    if !time.is_instant() && !sent {
        let text = "only a packet of the endpoint can have a range of times: write one time";
        return Err(ScriptError::malformed(line, text));
    }
    Ok(ScriptEvent { line, time, action })
}

fn event_time(cursor: &mut TokenCursor) -> Result<EventTime, ScriptError> {
    if cursor.eat('*') {
        return Ok(EventTime::Any);
    }
    let line = cursor.line();
    let is_relative = cursor.eat('+');
    let from = cursor.span()?;
    let mut to = from;
    if cursor.eat('~') {
        if is_relative {
            cursor.symbol('+')?;
        }
        to = cursor.span()?;
    }
    if to < from {
        let text = "the range of times is backwards: exchange its ends";
        return Err(ScriptError::malformed(line, text));
    }
    Ok(if is_relative {
        EventTime::Relative(from, to)
    } else {
        EventTime::Absolute(from, to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> ScriptEvent {
        let mut script = script(text).expect("a script without errors");
        assert_eq!(script.events.len(), 1);
        script.events.remove(0)
    }

    #[test]
    fn times_have_four_forms() {
        let ms = Span::from_millis;
        let relative = EventTime::Relative(ms(100), ms(100));
        assert_eq!(only("+.1 close(3) = 0").time, relative);
        let range = EventTime::Relative(ms(100), ms(200));
        assert_eq!(only("+.1~+.2 > . 1:1(0) ack 1").time, range);
        let absolute = EventTime::Absolute(ms(1500), ms(1500));
        assert_eq!(only("1.5 close(3) = 0").time, absolute);
        assert_eq!(only("* > . 1:1(0) ack 1").time, EventTime::Any);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, start) in [
            ("\n+.2~+.1 > . 1:1(0)", "line 2: the range"),
            ("0 close(3 = 0", "line 1: expected"),
            ("\n\n* close(3) = 0", "line 3: only a packet"),
            ("0 > . 1:5(3) ack 1", "line 1: 1 to 5 are 4 bytes"),
        ] {
            let error = script(text).expect_err(text);
            assert!(error.to_string().starts_with(start), "{error}");
        }
    }
}
