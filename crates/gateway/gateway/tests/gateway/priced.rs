//! A gateway with prices and an upstream that reports its busy share.

use std::io::Write as _;

use posthaste_gateway::{RunningGateway, start};
use tempfile::NamedTempFile;

use crate::support::{ReceivedReply, TestClient, TestOrigin, config, field, get, wait_until};
use crate::watching::{fetch_admin, value};

/// Watches the upstream's report.
const WATCH: &str = "[demand]\nwatch = { upstream = \"X-Busy\" }\n";
/// Prices that rise at the first busy sample and never fall, even while all requests are rejected.
pub(crate) const DEAR: &str = "controller = { policy = \"steps\", high = \"1%\", low = \"0%\", up = \"1.00\", window = \"20ms\", period = \"20ms\" }\n";

pub(crate) struct Priced {
    pub(crate) gateway: RunningGateway,
    pub(crate) origin: TestOrigin,
}

impl Priced {
    /// Adds `more` to the section of prices and after it.
    pub(crate) fn new(busy: &'static str, more: &str) -> Self {
        let origin = TestOrigin::start(move |line| {
            while line.request().is_some() {
                line.write(format!(
                    "HTTP/1.1 200 OK\r\nX-Busy: {busy}\r\nContent-Length: 2\r\n\r\nok"
                ));
            }
        });
        Self::before(origin, more)
    }

    /// Starts in front of the given upstream.
    pub(crate) fn before(origin: TestOrigin, more: &str) -> Self {
        let more = format!(
            "{WATCH}[trust]\nforwarded = [\"127.0.0.0/8\"]\n[protection]\npolicy = \"prices\"\nclient = \"X-Client\"\n[prices]\nevery = \"20ms\"\ncapacity = \"100/s\"\n{more}"
        );
        let gateway = start(config(&[origin.address], &more)).unwrap();
        Self { gateway, origin }
    }

    pub(crate) fn get(&self, fields: &str) -> ReceivedReply {
        get(&self.gateway, "/", fields)
    }

    pub(crate) fn price(&self) -> f64 {
        metrics(&self.gateway)("price ")
    }

    /// Sends requests until the price satisfies `is`.
    pub(crate) fn until(&self, is: impl Fn(f64) -> bool) {
        wait_until("the price is so", || {
            self.get("Max-Price: 1000 EUR\r\n");
            is(self.price())
        });
    }

    /// Returns the reply's fields in their original case, because tokens are case-sensitive.
    pub(crate) fn fields(&self, fields: &str) -> impl Fn(&str) -> Option<String> + use<> {
        let request = format!("GET / HTTP/1.1\r\nHost: s\r\nConnection: close\r\n{fields}\r\n");
        let reply = TestClient::new(&self.gateway).send(request).rest();
        let reply = String::from_utf8(reply).unwrap();
        move |name| field(&reply, name).map(str::to_owned)
    }

    /// Returns the token of a quote at price zero.
    pub(crate) fn quote(&self, client: &str) -> String {
        let line = self.fields(&format!("X-Client: {client}\r\nMax-Price: 0 EUR\r\n"))("quote");
        line.expect("a quote").split(';').next().unwrap().to_owned()
    }

    /// Sends a SOAP call with these fields and this SOAP header.
    pub(crate) fn call(&self, fields: &str, header: &str) -> ReceivedReply {
        let body = format!(
            "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Header>{header}</e:Header><e:Body/></e:Envelope>"
        );
        let request = format!(
            "POST / HTTP/1.1\r\nHost: s\r\nContent-Type: text/xml\r\nSOAPAction: \"\"\r\n\
             {fields}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        TestClient::new(&self.gateway)
            .send(request)
            .reply(false)
            .unwrap()
    }
}

pub(crate) fn metrics(gateway: &RunningGateway) -> impl Fn(&str) -> f64 {
    let text = String::from_utf8(fetch_admin(gateway, "/metrics").body).unwrap();
    move |start| value(&text, &format!("posthaste_gateway_{start}"))
}

/// A document with one offer that has these default promises.
pub(crate) fn promise(info: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    write!(
        file,
        "<wsqos xmlns='http://wsqos.org/'><definition><offers>\
         <qosOffer name='x' expires='2035-01-01T00:00:00Z'><defaultQoSInfo>{info}</defaultQoSInfo>\
         <price currency='EUR'>1</price></qosOffer></offers></definition></wsqos>"
    )
    .unwrap();
    file
}
