//! Parser of packets: `< S. 0:0(0) ack 1 win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>`.

use super::ScriptError;
use super::cursor::TokenCursor;
use super::lexer::Token;
use super::script::{Flags, Packet, PacketOptions};

/// Parses a packet behind its direction.
pub(super) fn packet(cursor: &mut TokenCursor, inbound: bool) -> Result<Packet, ScriptError> {
    refuse_other_layers(cursor)?;
    let flags = flags(cursor)?;
    let (seq, len) = sequence(cursor)?;
    let ack = if cursor.eat_word("ack") {
        Some(cursor.number("an acknowledgement number")?)
    } else {
        None
    };
    if ack.is_some() && !flags.ack {
        return Err(cursor.unexpected("`.` among the flags of a packet with `ack NUMBER`"));
    }
    // The flag alone goes with a number of 0.
    let ack = ack.or(flags.ack.then_some(0));
    let window = if cursor.eat_word("win") {
        Some(cursor.number("a window")?)
    } else {
        None
    };
    if cursor.is_word("urg") {
        return Err(ScriptError::unsupported(cursor.line(), "urgent data"));
    }
    let options = options(cursor)?;
    if inbound && options.is_none() {
        let text = "<...> needs a packet of the endpoint: write the options";
        return Err(ScriptError::malformed(cursor.line(), text));
    }
    Ok(Packet {
        inbound,
        flags,
        seq,
        len,
        ack,
        window,
        options,
    })
}

/// Refuses what is in front of the TCP flags: addresses, tunnels, marks, other protocols.
fn refuse_other_layers(cursor: &TokenCursor) -> Result<(), ScriptError> {
    let reason = match cursor.peek() {
        Some(Token::Symbol('[' | '(')) => "fields of the IP header (ECN, TOS, flow label)",
        Some(Token::Word(word)) => match word.as_str() {
            "ipv4" | "ipv6" | "gre" | "GREv0" | "mpls" | "encap" => "an encapsulated packet",
            "icmp" => "ICMP",
            "udp" => "UDP",
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    Err(ScriptError::unsupported(cursor.line(), reason))
}

fn flags(cursor: &mut TokenCursor) -> Result<Flags, ScriptError> {
    let mut flags = Flags::default();
    if cursor.eat('-') {
        return Ok(flags);
    }
    let line = cursor.line();
    let letters = if cursor.is_symbol('.') {
        String::new()
    } else {
        cursor.word("the flags of a packet")?
    };
    for letter in letters.chars() {
        match letter {
            'S' => flags.syn = true,
            'F' => flags.fin = true,
            'R' => flags.rst = true,
            'P' => flags.psh = true,
            'E' | 'W' | 'C' | 'A' => return Err(ScriptError::unsupported(line, "ECN")),
            'U' => return Err(ScriptError::unsupported(line, "urgent data")),
            '0'..='9' => return Err(cursor.unexpected("the flags of a packet without ports")),
            _ => {
                let text = format!("{letter:?} is no flag: write S, F, R, P or `.`");
                return Err(ScriptError::malformed(line, text));
            }
        }
    }
    if matches!(cursor.peek(), Some(Token::Decimal(_))) {
        return Err(ScriptError::unsupported(line, "AccECN"));
    }
    flags.ack = cursor.eat('.');
    Ok(flags)
}

/// Parses `1:1001(1000)` to the first sequence number and the length.
fn sequence(cursor: &mut TokenCursor) -> Result<(u32, u32), ScriptError> {
    let line = cursor.line();
    let start: u32 = cursor.number("a sequence number")?;
    cursor.symbol(':')?;
    let end: u32 = cursor.number("a sequence number")?;
    cursor.symbol('(')?;
    let len: u32 = cursor.number("a length")?;
    cursor.symbol(')')?;
    let between = end.wrapping_sub(start);
    if between != len {
        let text = format!("{start} to {end} are {between} bytes, not {len}: correct one of them");
        return Err(ScriptError::malformed(line, text));
    }
    Ok((start, len))
}

fn options(cursor: &mut TokenCursor) -> Result<Option<PacketOptions>, ScriptError> {
    let mut options = PacketOptions::default();
    // `<` also begins the next packet, but only behind a time.
    if !cursor.eat('<') {
        return Ok(Some(options));
    }
    if cursor.eat_token(&Token::Ellipsis) {
        cursor.symbol('>')?;
        return Ok(None);
    }
    loop {
        option(cursor, &mut options)?;
        if cursor.eat('>') {
            return Ok(Some(options));
        }
        cursor.symbol(',')?;
    }
}

fn option(cursor: &mut TokenCursor, options: &mut PacketOptions) -> Result<(), ScriptError> {
    let line = cursor.line();
    let name = cursor.word("an option")?;
    match name.as_str() {
        "nop" | "eol" => {}
        "mss" => options.mss = Some(cursor.number("an MSS")?),
        "wscale" => options.scale = Some(cursor.number("a shift")?),
        "sackOK" => options.sack_ok = true,
        "TS" => {
            let mut value = |name: &str| {
                if !cursor.eat_word(name) {
                    return Err(cursor.unexpected(name));
                }
                cursor.number("a timestamp")
            };
            options.timestamps = Some([value("val")?, value("ecr")?]);
        }
        "sack" => {
            while matches!(cursor.peek(), Some(Token::Word(_))) {
                let start = cursor.number("a sequence number")?;
                cursor.symbol(':')?;
                options
                    .sack
                    .push([start, cursor.number("a sequence number")?]);
            }
        }
        "FO" | "FOEXP" => return Err(ScriptError::unsupported(line, "TCP Fast Open")),
        "md5" => return Err(ScriptError::unsupported(line, "TCP MD5 signatures")),
        "ECN" => return Err(ScriptError::unsupported(line, "AccECN")),
        other => {
            let text = format!("{other:?} is no option: write mss, sackOK, sack, TS or wscale");
            return Err(ScriptError::malformed(line, text));
        }
    }
    Ok(())
}
