//! The client's preferences about compression and marking, and its terms for offers, from the request's head and a SOAP header.

use hyper::Method;
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderName};
use hyper::http::request::Parts;
use posthaste_compression::{
    Accept, Codings, Described, Prefer, Preference, ScanResult, Wish, saves_data,
};
use posthaste_qos::Priorities;
use posthaste_qos::QosBlock;
use posthaste_qos::marking::Urgency;
use posthaste_soap::Version;
use posthaste_soap::http::{self, MediaType};
use posthaste_units::{Ratio, Span};

use super::body::{RequestBody, StreamingBody};
use super::error::BodyError;
use super::headers::field_lines;
use super::message_scan::MessageScan;
use super::varying::VaryingFields;

const SOAP_ACTION: HeaderName = HeaderName::from_static("soapaction");
const PREFER: HeaderName = HeaderName::from_static("prefer");
const PRIORITY: HeaderName = HeaderName::from_static("priority");
const SAVE_DATA: HeaderName = HeaderName::from_static("save-data");

/// Preferences stated by a request, or by its route.
#[derive(Clone, Debug)]
pub(crate) struct Preferences {
    pub(crate) preference: Preference,
    pub(crate) accept: Accept,
    pub(crate) prefer: Prefer,
    /// Network priorities from the SOAP header.
    pub(crate) priorities: Option<Priorities>,
    pub(crate) urgency: Option<Urgency>,
    /// The fields with preferences that the request has.
    pub(crate) stated: VaryingFields,
    /// The offer selected by the SOAP header.
    pub(crate) selected: Option<String>,
    /// The processing time that the SOAP header requires.
    pub(crate) processing_time: Option<Span>,
    /// The reliability that the SOAP header requires.
    pub(crate) reliability: Option<Ratio>,
    /// A required processing time or reliability cannot be read.
    pub(crate) has_unread_metric: bool,
    /// Result of the scan for a SOAP header, if one took place.
    pub(crate) seen: Option<ScanResult>,
    /// Unreadable fields, in the order of [`UNREAD`](crate::record::metrics::UNREAD).
    pub(crate) unread: [bool; 3],
}

impl Preferences {
    /// True if the client leaves the decision to the gateway and accepts one of the codings.
    pub(crate) fn is_open(&self, offered: Codings) -> bool {
        let form = self.seen.unwrap_or_default().form();
        self.preference.is_open(form, &self.accept, offered)
    }

    /// Reads the head, and a SOAP message up to the end of its header. The pieces read are kept and forwarded first.
    /// `described` and `default` are preferences of the route, for requests that state none.
    pub(crate) async fn read(
        head: &Parts,
        body: &mut RequestBody,
        described: &Described,
        default: Wish,
    ) -> Result<Self, BodyError> {
        let media = soap_media(head);
        let mut scan = None;
        match body {
            RequestBody::Streaming(body) if media.is_some() => {
                scan = MessageScan::for_message(&head.headers);
                if let Some(scan) = &mut scan {
                    read_header(scan, body).await?;
                }
            }
            _ => {}
        }
        let scan = scan.as_mut().map(MessageScan::scan);
        let accept = Accept::read(field_lines(&head.headers, ACCEPT_ENCODING));
        let mut prefer_lines = field_lines(&head.headers, PREFER).peekable();
        let mut save_data_lines = field_lines(&head.headers, SAVE_DATA).peekable();
        let stated = VaryingFields {
            prefer: prefer_lines.peek().is_some(),
            save_data: save_data_lines.peek().is_some(),
        };
        let prefer = Prefer::read(prefer_lines);
        let saves = saves_data(save_data_lines);
        let seen = scan.map(|scan| ScanResult::from_scan(scan.head(), &scan.blocks().0));
        let qos = scan.map(|scan| &scan.blocks().1);
        let soap = seen.and_then(ScanResult::wish);
        let action = media.as_ref().and_then(|media| action(head, media));
        let of_action = action.and_then(|action| described.wish(action));
        Ok(Self {
            preference: Preference::from_sources(soap, &accept, &prefer, saves, of_action, default),
            accept,
            prefer,
            priorities: qos.and_then(QosBlock::priorities).cloned(),
            selected: qos.and_then(QosBlock::selected).map(str::to_owned),
            processing_time: qos.and_then(QosBlock::processing_time),
            reliability: qos.and_then(QosBlock::reliability),
            has_unread_metric: qos.is_some_and(QosBlock::has_unread_metric),
            urgency: Urgency::read(field_lines(&head.headers, PRIORITY)),
            stated,
            seen,
            unread: [
                accept.malformed() > 0,
                prefer.unknown,
                qos.is_some_and(QosBlock::has_unread_priority),
            ],
        })
    }
}

/// Reads a body up to the end of its SOAP header.
async fn read_header(scan: &mut MessageScan, body: &mut StreamingBody) -> Result<(), BodyError> {
    while scan.wants_more() {
        let Some(piece) = body.read_ahead().await? else {
            scan.finish();
            break;
        };
        scan.feed(piece);
    }
    Ok(())
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
