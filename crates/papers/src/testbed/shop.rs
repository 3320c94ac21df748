//! A bookshop and the gateway in front of it, in this process, and the requests of a client.
//!
//! Both start in the network of the calling thread. They can therefore run at the end of an emulated line or on
//! loopback. Preferences are stated as in the papers, in the SOAP header of the request. Requests for and against
//! compression then differ by one byte only (`always`, `never`).

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use posthaste_bookshop::{Catalogue, NAMESPACE, Size};
use posthaste_compression::{COMPRESSION, Step, Wish};
use posthaste_load::{RequestSpec, soap_request};
use posthaste_soap::EXTENSION_NAMESPACE as WSQOS;
use posthaste_soap::Version;
use posthaste_study::{Failure, lab::starting};
use posthaste_units::Seed;

/// Books in the catalogue. Requests concern one of them.
const BOOKS: usize = 1000;

/// The compression step with the papers' sizes.
pub(crate) const STEP: Step = Step::Gzip6;

/// Timeout, longer than any exchange on loopback.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running shop with its gateway.
pub(crate) struct ShopBehindGateway {
    gateway: posthaste_gateway::Running,
    shop: posthaste_bookshop::Running,
    isbn: String,
}

impl ShopBehindGateway {
    /// Starts both. The gateway listens on `listen`.
    pub(crate) fn open(listen: SocketAddr, seed: Seed) -> Result<Self, Failure> {
        let _turn = starting();
        let shop = posthaste_bookshop::start(posthaste_bookshop::BookshopConfig {
            listen: ([127, 0, 0, 1], 0).into(),
            books: BOOKS,
            seed,
            ..posthaste_bookshop::BookshopConfig::default()
        })?;
        // The papers compress the smallest reply, too, and repeat the compression for each request.
        let config = format!(
            "listen = \"{listen}\"\n\
             [compression]\n\
             steps = [\"{}\"]\n\
             least = \"1B\"\n\
             cache = \"0B\"\n\
             [[route]]\n\
             path = \"/\"\n\
             upstream = [\"{}\"]\n",
            STEP.name(),
            shop.addr
        );
        let gateway = posthaste_gateway::start(posthaste_gateway::Config::read(&config)?)?;
        Ok(Self {
            gateway,
            shop,
            isbn: Catalogue::new(BOOKS, seed).books()[0].isbn.clone(),
        })
    }

    /// The request of a client with this preference for the reply of this size.
    pub(crate) fn request(&self, size: Size, wish: Wish) -> RequestSpec {
        let (operation, isbn) = (size.operation(), &self.isbn);
        let content =
            format!("<{operation} xmlns=\"{NAMESPACE}\"><isbn>{isbn}</isbn></{operation}>");
        let action = format!("{NAMESPACE}/{operation}");
        let url = format!("http://{}/soap", self.gateway.addr);
        let mut request = soap_request(&url, Version::Soap11, &action, &content);
        if wish != Wish::Unstated {
            let (open, wish) = ("<soap:Body>", wish.name());
            let header = format!(
                "<soap:Header><p:{COMPRESSION} xmlns:p=\"{WSQOS}\">{wish}</p:{COMPRESSION}></soap:Header>"
            );
            request.body = request.body.replacen(open, &format!("{header}{open}"), 1);
        }
        request
    }

    /// The shop's SOAP message of this size.
    pub(crate) fn message(&self, size: Size) -> Result<Vec<u8>, Failure> {
        let RequestSpec { headers, body, .. } = self.request(size, Wish::Never);
        let mut head = format!("POST /soap HTTP/1.1\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        fetch(self.shop.addr, &head, &body)
    }

    /// The gateway's compression so far: replies, and seconds of CPU time.
    pub(crate) fn packed(&self) -> Result<(f64, f64), Failure> {
        let text = fetch(self.gateway.admin, "GET /metrics HTTP/1.1\r\n", "")?;
        let text = String::from_utf8(text)?;
        let number = |name: &str| {
            let step = format!("step=\"{}\"", STEP.name());
            let mut lines = text.lines();
            let line = lines.find(|line| line.starts_with(name) && line.contains(&step))?;
            line.rsplit(' ').next()?.parse::<f64>().ok()
        };
        let replies = number("posthaste_gateway_packed_total");
        let seconds = number("posthaste_gateway_packed_cpu_seconds_total");
        replies
            .zip(seconds)
            .ok_or_else(|| "the gateway does not say what it has compressed".into())
    }
}

/// Returns the body of the reply to one request, of any length.
pub(crate) fn fetch(address: SocketAddr, head: &str, body: &str) -> Result<Vec<u8>, Failure> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "{head}Host: {address}\r\nConnection: close\r\n\r\n{body}"
    )?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    let end = reply.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.ok_or("a reply without an end of its header")?;
    if !reply.starts_with(b"HTTP/1.1 200 ") {
        let line = String::from_utf8_lossy(&reply[..end]).into_owned();
        return Err(format!("{address} says {line}").into());
    }
    Ok(reply.split_off(end + 4))
}
