//! A service as busy as it says, behind a gateway with prices.

use std::io::Write as _;

use posthaste_gateway::{Running, start};
use tempfile::NamedTempFile;

use crate::support::{Client, Origin, Reply, config, field, get, wait_until};
use crate::watching::{told, value};

/// An upstream that says how busy it is.
const WATCH: &str = "[demand]\nwatch = { upstream = \"X-Busy\" }\n";
/// Dear from the first busy look on, and never again cheaper, even while all are refused and nothing is done.
pub(crate) const DEAR: &str = "controller = { policy = \"steps\", high = \"1%\", low = \"0%\", up = \"1.00\", window = \"20ms\", period = \"20ms\" }\n";

pub(crate) struct Priced {
    pub(crate) gateway: Running,
    pub(crate) origin: Origin,
}

impl Priced {
    /// With more in the section of prices, and other sections behind it.
    pub(crate) fn new(busy: &'static str, more: &str) -> Self {
        let origin = Origin::start(move |line| {
            while line.request().is_some() {
                line.write(format!(
                    "HTTP/1.1 200 OK\r\nX-Busy: {busy}\r\nContent-Length: 2\r\n\r\nok"
                ));
            }
        });
        Self::before(origin, more)
    }

    /// Before an upstream of one's own.
    pub(crate) fn before(origin: Origin, more: &str) -> Self {
        let more = format!(
            "{WATCH}[protection]\npolicy = \"prices\"\nclient = \"X-Client\"\n[prices]\nevery = \"20ms\"\ncapacity = \"100/s\"\n{more}"
        );
        let gateway = start(config(&[origin.address], &more)).unwrap();
        Self { gateway, origin }
    }

    pub(crate) fn get(&self, fields: &str) -> Reply {
        get(&self.gateway, "/", fields)
    }

    pub(crate) fn price(&self) -> f64 {
        metrics(&self.gateway)("price ")
    }

    /// Asks until the price is so.
    pub(crate) fn until(&self, is: impl Fn(f64) -> bool) {
        wait_until("the price is so", || {
            self.get("Max-Price: 1000 EUR\r\n");
            is(self.price())
        });
    }

    /// The fields of the reply to a GET with these, as they were written: tokens are told apart by case.
    pub(crate) fn fields(&self, fields: &str) -> impl Fn(&str) -> Option<String> + use<> {
        let request = format!("GET / HTTP/1.1\r\nHost: s\r\nConnection: close\r\n{fields}\r\n");
        let reply = Client::new(&self.gateway).send(request).rest();
        let reply = String::from_utf8(reply).unwrap();
        move |name| field(&reply, name).map(str::to_owned)
    }

    /// The token of a quote at no price.
    pub(crate) fn quote(&self, client: &str) -> String {
        let line = self.fields(&format!("X-Client: {client}\r\nMax-Price: 0 EUR\r\n"))("quote");
        line.expect("a quote").split(';').next().unwrap().to_owned()
    }

    /// Calls by SOAP, with these fields and this in the message's header.
    pub(crate) fn call(&self, fields: &str, header: &str) -> Reply {
        let body = format!(
            "<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'><e:Header>{header}</e:Header><e:Body/></e:Envelope>"
        );
        let request = format!(
            "POST / HTTP/1.1\r\nHost: s\r\nContent-Type: text/xml\r\nSOAPAction: \"\"\r\n\
             {fields}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Client::new(&self.gateway)
            .send(request)
            .reply(false)
            .unwrap()
    }
}

pub(crate) fn metrics(gateway: &Running) -> impl Fn(&str) -> f64 {
    let text = String::from_utf8(told(gateway, "/metrics").body).unwrap();
    move |start| value(&text, &format!("posthaste_gateway_{start}"))
}

/// A document with one offer that promises this by default.
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
