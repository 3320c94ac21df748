//! SOAP interface: the operations of the original WS-QoS broker, with a WSDL description.

use hyper::StatusCode;
use hyper::header::{self, HeaderName};
use hyper::http::request::Parts;
use jiff::Timestamp;
use posthaste_qos::{Document, Offers, Ranking, Requirement, bounds};
use posthaste_serve::{Incoming, Peer};
use posthaste_soap::xml::{Token, decode};
use posthaste_soap::{Code, Fault, Limits, Refusal, Request, Version, http, write};

use super::body::read;
use super::description::NAMESPACE;
use super::lookup::BestOfferQuery;
use super::problem::{Also, ProblemDetails};
use super::reply::BrokerReply;
use super::{BrokerHandler, path};

/// Maximum number of offers in a reply of `AvailableOffersInfo`.
const LISTED: usize = 1_000;

const SOAP_ACTION: HeaderName = HeaderName::from_static("soapaction");

/// Supported operations.
const OPERATIONS: [(&str, Operation); 4] = [
    ("GetBestOffer", get_best_offer),
    ("AvailableOffersInfo", available_offers_info),
    ("GetTrustedProviders", get_trusted_providers),
    ("GetRegistryLocation", get_registry_location),
];

/// Appends the children of an operation's reply.
type Operation = fn(&SoapCall<'_>, &mut String) -> Result<(), Fault>;

/// A parsed request and its text.
struct SoapCall<'a> {
    handler: &'a BrokerHandler,
    request: Request<'a>,
    text: &'a str,
    limits: &'a Limits,
}

impl BrokerHandler {
    /// Handles an envelope. Errors become SOAP faults if the SOAP version is known, problem details otherwise.
    pub(super) async fn soap(&self, parts: &Parts, body: Incoming, peer: &Peer) -> BrokerReply {
        match self.answer_soap(parts, body, peer).await {
            Ok(reply) => reply,
            Err(problem) => BrokerReply::from(problem),
        }
    }

    async fn answer_soap(
        &self,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Result<BrokerReply, ProblemDetails> {
        let text = |name: HeaderName| {
            parts
                .headers
                .get(name)
                .map(|value| value.to_str().unwrap_or_default())
        };
        let refuse = |error: http::HeaderError| {
            let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST);
            ProblemDetails::new(status, error.to_string())
        };
        let media =
            http::media_type(text(header::CONTENT_TYPE).unwrap_or_default()).map_err(refuse)?;
        let version = media.version;
        let action = match version {
            Version::Soap11 => http::soap_action(text(SOAP_ACTION)).map_err(refuse)?,
            Version::Soap12 => media.action.unwrap_or_default(),
        };
        let body = read(parts, body, bounds::BYTES, peer).await?;
        let (status, envelope) = match self.call(&body, version, action) {
            Ok(envelope) => (StatusCode::OK, envelope),
            Err(fault) => {
                let status = StatusCode::from_u16(fault.status(version));
                (
                    status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                    fault.envelope(version),
                )
            }
        };
        Ok(BrokerReply::new(
            status,
            http::content_type(version),
            envelope,
        ))
    }

    fn call(&self, body: &[u8], version: Version, action: &str) -> Result<String, Fault> {
        let limits = Limits {
            total: bounds::BYTES,
            ..Limits::default()
        };
        let text = decode(body, &limits).map_err(|error| Refusal::from(error).fault())?;
        let request = Request::read(&text, version, &limits, &[]).map_err(|error| error.fault())?;
        let name = &request.operation;
        let known = OPERATIONS
            .iter()
            .find(|(operation, _)| name.is(NAMESPACE, operation));
        let (operation, answer) = known.ok_or_else(|| {
            let known = OPERATIONS.map(|(name, _)| name).join(", ");
            client(format!(
                "there is no operation {:?} in {:?}: {NAMESPACE:?} has {known}",
                name.local, name.namespace
            ))
        })?;
        // R2744, R2745: SOAPAction is the value in the description, or empty.
        let theirs = action
            .strip_prefix(NAMESPACE)
            .and_then(|rest| rest.strip_prefix('/'));
        if !action.is_empty() && theirs != Some(operation) {
            return Err(client(format!(
                "the action {action:?} does not belong to {operation}: send \"{NAMESPACE}/{operation}\" or \"\" (R2744, R2745)"
            )));
        }
        let mut out = String::with_capacity(2 << 10);
        write::open(version, &mut out);
        out.push_str(&format!("<b:{operation}Response xmlns:b=\"{NAMESPACE}\">"));
        let call = SoapCall {
            handler: self,
            request,
            text: &text,
            limits: &limits,
        };
        answer(&call, &mut out)?;
        out.push_str(&format!("</b:{operation}Response>"));
        write::close(&mut out);
        Ok(out)
    }

    /// Handles GET of `/soap`: the WSDL description, or an error that says how to use it.
    pub(super) fn describe(&self, parts: &Parts) -> Result<BrokerReply, ProblemDetails> {
        let query = parts.uri.query().unwrap_or_default();
        if !query
            .split('&')
            .any(|part| part.eq_ignore_ascii_case("wsdl"))
        {
            let message = "POST an envelope here, or GET /soap?wsdl for the description (R1132)";
            let problem = ProblemDetails::new(StatusCode::METHOD_NOT_ALLOWED, message);
            return Err(problem.with(Also::Allow("POST")));
        }
        let host = match (parts.headers.get(header::HOST), parts.uri.authority()) {
            (_, Some(authority)) => authority.to_string(),
            (Some(host), None) => host.to_str().unwrap_or_default().to_owned(),
            (None, None) => self.context.address.to_string(),
        };
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b".:-_[]".contains(&b);
        if host.is_empty() || !host.bytes().all(allowed) {
            return Err(ProblemDetails::bad(
                "the Host field is not the name of a host",
            ));
        }
        let wsdl = self
            .context
            .service
            .wsdl(&format!("{}://{host}/soap", self.context.scheme));
        Ok(BrokerReply::new(
            StatusCode::OK,
            "text/xml; charset=utf-8",
            wsdl,
        ))
    }
}

impl SoapCall<'_> {
    fn kind(&self) -> Result<String, Fault> {
        let kind = self.request.field("tModelKey");
        let kind = kind
            .ok_or_else(|| client("there is no tModelKey in the request"))?
            .trim();
        path::check_name(kind).map_err(|problem| client(problem.detail))?;
        Ok(kind.to_owned())
    }

    /// Parses the `wsqos` document in the field `requirements`.
    fn requirement(&self) -> Result<Requirement, Fault> {
        let within = Request::enter(self.text, self.limits, "requirements");
        let mut scanner =
            within.ok_or_else(|| client("there are no requirements in the request"))?;
        loop {
            match scanner
                .token()
                .map_err(|error| Refusal::from(error).fault())?
            {
                Token::Text(_) => {}
                Token::Start(name) if name.local == "wsqos" => break,
                _ => return Err(client("requirements must have one element wsqos")),
            }
        }
        match Document::read_from(&mut scanner) {
            Ok(Document::Requirement(requirement)) => Ok(requirement),
            Ok(_) => Err(client("there are no requirements in the document")),
            Err(error) => Err(client(error.to_string())),
        }
    }
}

fn get_best_offer(call: &SoapCall<'_>, out: &mut String) -> Result<(), Fault> {
    let question = BestOfferQuery {
        kind: call.kind()?,
        requirements: call.requirement()?,
        ranking: Ranking::default(),
    };
    let current = call.handler.context.registry.read();
    let answer = call.handler.find(&current.index, &question);
    call.handler
        .context
        .metrics
        .count_answer(answer.offer.is_some());
    if let Some(provider) = answer.provider {
        write::element("b:provider", &provider, out);
    }
    if let Some(offer) = answer.offer {
        if let Some(endpoint) = &offer.endpoint {
            write::element("b:endpoint", endpoint, out);
        }
        let offers = vec![offer];
        out.push_str("<b:offer>");
        Document::Offers(Offers {
            offers,
            ..Offers::default()
        })
        .write_into(out);
        out.push_str("</b:offer>");
    }
    for against in answer.reasons {
        for objection in against.objections {
            let message = format!("{}, {}: {objection}", against.provider, against.name);
            write::element("b:reason", &message, out);
        }
    }
    Ok(())
}

fn available_offers_info(call: &SoapCall<'_>, out: &mut String) -> Result<(), Fault> {
    let kind = call.kind()?;
    let current = call.handler.context.registry.read();
    call.handler.demand(&kind);
    let now = Timestamp::now();
    for found in current
        .index
        .offers(&kind)
        .filter(|found| found.offer.expires > now)
        .take(LISTED)
    {
        out.push_str("<b:Offer>");
        write::element("b:provider", found.provider, out);
        write::element("b:name", &found.offer.name, out);
        if let Some(price) = found.offer.qos.price {
            write::element("b:price", &price.amount(), out);
            write::element("b:currency", &price.currency().to_string(), out);
        }
        write::element("b:expires", &found.offer.expires.to_string(), out);
        out.push_str("</b:Offer>");
    }
    Ok(())
}

fn get_trusted_providers(call: &SoapCall<'_>, out: &mut String) -> Result<(), Fault> {
    let mut providers = call.handler.context.registry.providers();
    if let Some(directory) = &call.handler.context.directory {
        providers.extend(directory.trusted());
    }
    for provider in providers {
        write::element("b:provider", &provider, out);
    }
    Ok(())
}

fn get_registry_location(call: &SoapCall<'_>, out: &mut String) -> Result<(), Fault> {
    let own = || {
        format!(
            "{}://{}/soap",
            call.handler.context.scheme, call.handler.context.address
        )
    };
    let directory = call.handler.context.directory.as_ref();
    let location = directory.map_or_else(own, |directory| directory.location.clone());
    write::element("b:location", &location, out);
    Ok(())
}

fn client(message: impl Into<String>) -> Fault {
    Fault::new(Code::Client, message)
}
