//! A client that writes a form to a proxy as stated, and waits for the end of the reply.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use posthaste_http::streams::http2::frame::{PREFACE, flag, kind};
use posthaste_http::streams::http2::hpack::BlockDecoder;

use super::forms::SentForm;
use super::frames::{self, read_frame, write_body, write_frame, write_head};
use super::message::Protocol;

/// Time limit for each part of the reply.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends a form on a connection of its own. Returns the status of the reply.
pub(super) fn send(form: &SentForm, proxy: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(proxy)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    match form.message.protocol {
        Protocol::Http1 => send_http1(form, &mut stream),
        Protocol::Http2 => send_http2(form, &mut stream),
    }
}

fn send_http1(form: &SentForm, stream: &mut TcpStream) -> io::Result<String> {
    let mut reply = Vec::new();
    if form.waits_for_continue {
        stream.write_all(&form.message.http1_head())?;
        let interim = read_head(stream, &mut reply)?;
        if interim != "100" {
            return Ok(interim);
        }
        stream.write_all(&form.message.http1_body())?;
    } else {
        stream.write_all(&form.message.http1_bytes())?;
    }
    loop {
        let status = read_head(stream, &mut reply)?;
        if !status.starts_with('1') {
            return Ok(status);
        }
    }
}

/// Reads the next head of a reply. `bytes` are those that have been read and not used. Returns its status.
fn read_head(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<String> {
    let mut piece = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            bytes.drain(..end + 4);
            return Ok(head.split(' ').nth(1).unwrap_or_default().to_owned());
        }
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => bytes.extend_from_slice(&piece[..length]),
        }
    }
}

fn send_http2(form: &SentForm, stream: &mut TcpStream) -> io::Result<String> {
    stream.write_all(PREFACE)?;
    write_frame(stream, kind::SETTINGS, 0, 0, b"")?;
    let mut decoder = BlockDecoder::default();
    write_head(stream, &form.message, form.sends_empty_data)?;
    write_body(stream, &form.message, form.sends_empty_data)?;
    loop {
        let (status, is_end) = read_status(stream, &mut decoder)?;
        if !status.starts_with('1') || is_end {
            return Ok(status);
        }
    }
}

/// Reads the next head of a reply. Returns its status, and true if the reply ends with it.
fn read_status(stream: &mut TcpStream, decoder: &mut BlockDecoder) -> io::Result<(String, bool)> {
    loop {
        let frame = read_frame(stream)?;
        match frame.head.kind {
            kind::SETTINGS if !frame.head.has(flag::ACK) => {
                write_frame(stream, kind::SETTINGS, flag::ACK, 0, b"")?;
            }
            kind::RST_STREAM => return Ok((format!("reset {:?}", frame.payload), true)),
            kind::GOAWAY => return Ok((format!("GOAWAY {:?}", frame.payload), true)),
            kind::HEADERS => {
                let fields = frames::fields(decoder, &frame.payload)?;
                let status = fields.iter().find(|line| line.is(":status"));
                let status = status.map(|line| String::from_utf8_lossy(line.value()).into_owned());
                let is_end = frame.head.has(flag::END_STREAM);
                return Ok((status.unwrap_or_default(), is_end));
            }
            _ => {}
        }
    }
}
