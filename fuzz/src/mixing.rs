//! Doubtful parts of requests, mixed: what must hold of any bytes of a connection holds of these, which are nearly right.

use crate::doubtful::{CHUNKS, CODINGS, FIELDS, LINES};
use crate::request_framing::frames_alike;

/// Bytes that say which parts, four for each request: its line, its fields, which kind they are, and its body. The first says
/// how long the pieces are in which all of it comes.
pub fn doubtful(input: &[u8]) {
    let Some((piece, choices)) = input.split_first() else {
        return;
    };
    let chosen = |parts: &[&'static str], choice: u8| parts[usize::from(choice) % parts.len()];
    let mut stream = Vec::new();
    for choice in choices.chunks_exact(4).take(32) {
        let fields = match choice[2] % 4 {
            0 => chosen(FIELDS, choice[1]).to_owned(),
            1 => chosen(CODINGS, choice[1]).to_owned(),
            2 => format!(
                "{}\r\n{}",
                chosen(FIELDS, choice[1]),
                chosen(CODINGS, choice[2])
            ),
            _ => format!(
                "{}\r\n{}",
                chosen(CODINGS, choice[1]),
                chosen(FIELDS, choice[2])
            ),
        };
        let body = match choice[2] & 0x80 {
            0 => chosen(CHUNKS, choice[3]),
            _ => "hello",
        };
        let line = chosen(LINES, choice[0]);
        stream.extend_from_slice(format!("{line}\r\n{fields}\r\n\r\n{body}").as_bytes());
    }
    frames_alike(&stream, stream.chunks(usize::from(*piece).max(1)));
}
