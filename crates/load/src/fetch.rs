//! A blocking HTTP GET of one document, used for a WSDL before the run begins.
//!
//! It uses the run's addresses for names and the run's trusted certificates.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};

use crate::data::Data;
use crate::http::{ReplyProgress, ReplyReader};
use crate::request::{Request, RequestSpec};
use crate::target::{RequestTarget, Resolve};
use crate::tls::{self, TlsOptions};

/// Time limit of each wait: for the connection and for more bytes.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit for the whole document.
const LONGEST: Duration = Duration::from_secs(60);
/// Maximum size of a document in bytes.
const LIMIT: usize = 16 << 20;

/// Returns the body of a GET of `url` as received. An error for a status other than 2xx.
pub(crate) fn fetch(
    url: &str,
    resolve: &[Resolve],
    options: &TlsOptions,
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let spec = RequestSpec::get(url);
    let target = RequestTarget::look_up(url, resolve)?;
    let mut wire = Vec::new();
    Request::prepare(&spec, &target, 0, false, &Data::none())?.write(
        &Data::none(),
        0,
        &mut wire,
    )?;
    let socket = TcpStream::connect_timeout(&target.origin.address, PATIENCE)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    if target.origin.tls {
        let name = tls::server_name(&target.origin.host)?;
        let client = ClientConnection::new(options.config()?, name)?;
        exchange(StreamOwned::new(client, socket), &wire)
    } else {
        exchange(socket, &wire)
    }
}

fn exchange(
    mut stream: impl Read + Write,
    request: &[u8],
) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    stream.write_all(request).map_err(tls::with_remedy)?;
    let mut reader = ReplyReader::keeping_everything(LIMIT);
    let mut buffer = vec![0; 64 << 10];
    let mut received = 0;
    let started = Instant::now();
    loop {
        if started.elapsed() > LONGEST {
            return Err(format!("not complete after {} s", LONGEST.as_secs()).into());
        }
        let length = match stream.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(format!("no more bytes for {} s", PATIENCE.as_secs()).into());
            }
            Err(error) => return Err(tls::with_remedy(error).into()),
        };
        received += length;
        if received > LIMIT {
            return Err(format!("longer than {LIMIT} bytes").into());
        }
        if length == 0 {
            reader.closed()?;
        }
        let complete = length == 0
            || matches!(
                reader.feed(&buffer[..length])?,
                ReplyProgress::Complete { .. }
            );
        if complete {
            return match reader.status() {
                200..300 => Ok(reader.into_body()),
                status => Err(format!("status {status}").into()),
            };
        }
    }
}
