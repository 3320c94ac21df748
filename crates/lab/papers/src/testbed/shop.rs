//! A bookshop and the gateway in front of it, in this process, and the requests of a client.
//!
//! Both start in the network of the calling thread. They can therefore run at the end of an emulated line or on
//! loopback. Preferences are stated as in the papers, in the SOAP header of the request. Requests for and against
//! compression then differ by one byte only (`always`, `never`).

use std::net::SocketAddr;
use std::time::Duration;

use posthaste_bookshop::{Catalogue, NAMESPACE, Size};
use posthaste_compression::{COMPRESSION, Step, Wish};
use posthaste_load::{RequestSpec, soap_request};
use posthaste_serve::client::{ClientLimits, ClientRequest, HttpClient, block_on, request};
use posthaste_soap::EXTENSION_NAMESPACE as WSQOS;
use posthaste_soap::Version;
use posthaste_study::{Failure, lab::starting};
use posthaste_units::Seed;

/// Books in the catalogue. Requests concern one of them.
const BOOKS: usize = 1000;

/// The compression step with the papers' sizes.
pub(crate) const STEP: Step = Step::Gzip6;

/// Longer than any exchange on loopback.
const LIMITS: ClientLimits = ClientLimits {
    step: Duration::from_secs(10),
    total: Duration::MAX,
    body: usize::MAX,
};

/// A running shop with its gateway.
pub(crate) struct ShopBehindGateway {
    gateway: posthaste_gateway::RunningGateway,
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
        let gateway = posthaste_gateway::start(posthaste_gateway::GatewayConfig::read(&config)?)?;
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
        let fields = headers.iter().map(|(name, value)| (&**name, &**value));
        exchange(self.shop.addr, request("POST", "/soap", fields, body)?)
    }

    /// The gateway's compression so far: replies, and seconds of CPU time.
    pub(crate) fn packed(&self) -> Result<(f64, f64), Failure> {
        let text = fetch(self.gateway.admin, "/metrics")?;
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

/// Returns the body of a GET, of any length.
pub(crate) fn fetch(address: SocketAddr, path: &str) -> Result<String, Failure> {
    let body = exchange(address, request("GET", path, [], "")?)?;
    Ok(String::from_utf8(body)?)
}

fn exchange(address: SocketAddr, request: ClientRequest) -> Result<Vec<u8>, Failure> {
    let reply = block_on(HttpClient::at(address, LIMITS).fetch(request))??;
    match reply.status().as_u16() {
        200 => Ok(reply.into_body().into()),
        _ => Err(format!("{address} replies {:?} {}", reply.version(), reply.status()).into()),
    }
}
