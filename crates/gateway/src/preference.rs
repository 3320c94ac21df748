//! The client's preferences about compression and marking, from the request's head and a SOAP header.

use hyper::Method;
use hyper::header::{ACCEPT_ENCODING, AsHeaderName, CONTENT_TYPE, HeaderMap, HeaderName};
use hyper::http::request::Parts;
use posthaste_compression::{
    Accept, Codings, Prefer, Preference, PreferenceBlock, ScanResult, saves_data,
};
use posthaste_qos::Priorities;
use posthaste_qos::QosBlock;
use posthaste_qos::marking::Urgency;
use posthaste_soap::head::HeadScan;
use posthaste_soap::http::{self, MediaType};
use posthaste_soap::{Limits, Version};

use crate::body::{BodyError, Outgoing};
use crate::site::Route;

const SOAP_ACTION: HeaderName = HeaderName::from_static("soapaction");
const PREFER: HeaderName = HeaderName::from_static("prefer");
const PRIORITY: HeaderName = HeaderName::from_static("priority");
const SAVE_DATA: HeaderName = HeaderName::from_static("save-data");

/// Readers of the header blocks.
type Blocks = (PreferenceBlock, QosBlock);

/// Preferences stated by a request.
#[derive(Clone, Debug)]
pub(crate) struct Wishes {
    pub(crate) preference: Preference,
    pub(crate) accept: Accept,
    pub(crate) prefer: Prefer,
    /// Network priorities from the SOAP header.
    pub(crate) priorities: Option<Priorities>,
    pub(crate) urgency: Option<Urgency>,
    /// The offer selected by the SOAP header.
    pub(crate) selected: Option<String>,
    /// Result of the scan for a SOAP header, if one took place.
    pub(crate) seen: Option<ScanResult>,
    /// Unreadable fields, in the order of [`UNREAD`](crate::metrics::UNREAD).
    pub(crate) unread: [bool; 3],
}

impl Wishes {
    /// True if the client leaves the decision to the gateway and accepts one of the codings.
    pub(crate) fn is_open(&self, offered: Codings) -> bool {
        let form = self.seen.unwrap_or_default().form();
        self.preference.is_open(form, &self.accept, offered)
    }

    /// Reads the head, and a SOAP message up to the end of its header. The pieces read are kept and forwarded first.
    pub(crate) async fn read(
        head: &Parts,
        body: &mut Outgoing,
        route: &Route,
    ) -> Result<Self, BodyError> {
        let media = soap_media(head);
        let mut scan = None;
        match body {
            Outgoing::Streaming(body) if media.is_some() => {
                let scan = scan.insert(HeadScan::new(&Limits::default(), Blocks::default()));
                while scan.wants_more() {
                    match body.read_ahead().await? {
                        Some(piece) => scan.feed(piece),
                        None => break,
                    };
                }
            }
            _ => {}
        }
        let accept = Accept::read(lines(&head.headers, ACCEPT_ENCODING));
        let prefer = Prefer::read(lines(&head.headers, PREFER));
        let saves = saves_data(lines(&head.headers, SAVE_DATA));
        let seen = scan
            .as_ref()
            .map(|scan| ScanResult::of(scan.head(), &scan.blocks().0));
        let qos = scan.as_ref().map(|scan| &scan.blocks().1);
        let soap = seen.and_then(ScanResult::wish);
        let action = media.as_ref().and_then(|media| action(head, media));
        let described = action.and_then(|action| route.described.wish(action));
        Ok(Self {
            preference: Preference::of(soap, &accept, &prefer, saves, described, route.wish),
            accept,
            prefer,
            priorities: qos.and_then(QosBlock::priorities).cloned(),
            selected: qos.and_then(QosBlock::selected).map(str::to_owned),
            urgency: Urgency::read(lines(&head.headers, PRIORITY)),
            seen,
            unread: [
                accept.malformed() > 0,
                prefer.unknown,
                qos.is_some_and(QosBlock::has_unread_priority),
            ],
        })
    }
}

/// Returns the media type of a possible SOAP message.
pub(crate) fn soap_media(head: &Parts) -> Option<MediaType<'_>> {
    let kind = head.headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let media = http::media_type(kind).ok()?;
    (head.method == Method::POST).then_some(media)
}

/// Returns the action of a call (SOAP 1.1: field SOAPAction; SOAP 1.2: parameter of the media type).
fn action<'a>(head: &'a Parts, media: &MediaType<'a>) -> Option<&'a str> {
    match media.version {
        Version::Soap11 => {
            let field = head.headers.get(SOAP_ACTION)?.to_str().ok();
            http::soap_action(field).ok()
        }
        Version::Soap12 => media.action,
    }
}

/// Returns the lines of a field.
pub(crate) fn lines(headers: &HeaderMap, name: impl AsHeaderName) -> impl Iterator<Item = &[u8]> {
    headers
        .get_all(name)
        .into_iter()
        .map(|line| line.as_bytes())
}
