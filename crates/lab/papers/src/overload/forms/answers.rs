//! One reply of each form, asked for by other clients than the generator, and compared with the book.
//!
//! HTTP/2 and gRPC are read by the h2 crate, because the generator has its own implementation of both. A reply is right if
//! it states every fact of the catalogue's book in its place; one of gRPC also needs status 0 in its trailers, after
//! exactly one message.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use posthaste_bookshop::Book;
use posthaste_http::grpc::MessageReader;
use posthaste_load::RequestSpec;
use posthaste_serve::client::{ClientLimits, HttpClient, block_on, request};
use posthaste_study::{Failure, RecordTable};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::service_form::{ServiceForm, method};
use super::traffic::FormsTestbed;
use crate::overload::facts::values;

/// Time limit of an exchange on loopback.
const PATIENCE: Duration = Duration::from_secs(10);

const LIMITS: ClientLimits = ClientLimits {
    step: PATIENCE,
    total: PATIENCE,
    body: 1 << 20,
};

/// A complete reply.
struct FormReply {
    status: u16,
    body: Vec<u8>,
    /// The status of gRPC in the trailers.
    grpc_status: Option<String>,
}

/// The table of answers: facts in the reply of each form, and bytes of its body.
pub(super) fn ask_all(testbed: &FormsTestbed, book: &Book) -> Result<RecordTable, Failure> {
    let mut table = RecordTable::new(["form", "facts", "body", "grpc_status"]);
    for form in ServiceForm::ALL {
        let answer = ask(form, testbed.shop.address(), &book.isbn)?;
        let facts = facts(form, &answer, book)?;
        table.push([
            form.key().into(),
            (facts as u64).into(),
            (answer.body.len() as u64).into(),
            answer.grpc_status.as_deref().unwrap_or_default().into(),
        ]);
    }
    Ok(table)
}

/// Exchanges the request of a form for its reply.
fn ask(form: ServiceForm, address: SocketAddr, isbn: &str) -> Result<FormReply, Failure> {
    let spec = form.sample(address, isbn)?;
    if form.is_http2() {
        // The timer belongs to the runtime, so it is made within.
        return block_on(async { timeout(PATIENCE, ask_http2(address, &spec)).await })??;
    }
    let path = spec.url.replace(&format!("http://{address}"), "");
    let fields = spec.headers.iter().map(|(name, value)| (&**name, &**value));
    let request = request(&spec.method, &path, fields, spec.body.clone())?;
    let reply = block_on(HttpClient::at(address, LIMITS).fetch(request))??;
    Ok(FormReply {
        status: reply.status().as_u16(),
        body: reply.into_body().into(),
        grpc_status: None,
    })
}

async fn ask_http2(address: SocketAddr, spec: &RequestSpec) -> Result<FormReply, Failure> {
    let stream = TcpStream::connect(address).await?;
    let (sender, connection) = h2::client::handshake(stream).await?;
    // Ends with the runtime, and its errors are those of the exchange.
    tokio::spawn(connection);
    let mut head = http::Request::builder()
        .method(&*spec.method)
        .uri(&*spec.url);
    for (name, value) in &spec.headers {
        head = head.header(name, value);
    }
    let empty = spec.body.is_empty();
    let (reply, mut sending) = sender.ready().await?.send_request(head.body(())?, empty)?;
    if !empty {
        sending.send_data(Bytes::from(spec.body.clone()), true)?;
    }
    let (head, mut incoming) = reply.await?.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = incoming.data().await {
        let piece = piece?;
        incoming.flow_control().release_capacity(piece.len())?;
        body.extend_from_slice(&piece);
    }
    let trailers = incoming.trailers().await?.unwrap_or_default();
    let status = trailers.get("grpc-status");
    Ok(FormReply {
        status: head.status.as_u16(),
        body,
        grpc_status: status.map(|status| String::from_utf8_lossy(status.as_bytes()).into_owned()),
    })
}

/// Number of the book's facts that the reply states in their places. Zero if the reply is not a good one.
fn facts(form: ServiceForm, answer: &FormReply, book: &Book) -> Result<usize, Failure> {
    let is_call = form == ServiceForm::Grpc;
    let expected = is_call.then_some("0");
    if answer.status != 200 || answer.grpc_status.as_deref() != expected {
        return Ok(0);
    }
    let body = String::from_utf8_lossy(&answer.body);
    match form {
        ServiceForm::Soap => {
            let element = |(name, value): (&str, String)| {
                let mut text = String::new();
                posthaste_soap::write::element(name, &value, &mut text);
                text
            };
            let mut elements = values(book).into_iter().map(element);
            Ok(count(&mut elements, |text| body.contains(&text)))
        }
        ServiceForm::Page => {
            let mut parts = values(book)
                .into_iter()
                .map(|(name, value)| in_page(name, &value));
            Ok(count(&mut parts, |text| body.contains(&text)))
        }
        ServiceForm::Json | ServiceForm::JsonHttp2 => facts_of_json(&body, book),
        ServiceForm::Grpc => {
            let mut reader = MessageReader::new(LIMITS.body);
            let mut bytes = &answer.body[..];
            let message = reader.next(&mut bytes)?;
            let is_one = bytes.is_empty() && reader.end().is_ok();
            match message.filter(|message| is_one && !message.compressed) {
                Some(message) => facts_of_json(&method()?.decode_reply(&message.data)?, book),
                None => Ok(0),
            }
        }
    }
}

fn count<T>(parts: &mut dyn Iterator<Item = T>, is_there: impl Fn(T) -> bool) -> usize {
    parts.map(is_there).filter(|is_there| *is_there).count()
}

/// Facts in the only book of a JSON text. Numbers count like their digits as a string.
fn facts_of_json(text: &str, book: &Book) -> Result<usize, Failure> {
    let reply: serde_json::Value = serde_json::from_str(text)?;
    let stated = match reply["books"].as_array().map(Vec::as_slice) {
        Some([only]) => only,
        _ => return Ok(0),
    };
    let mut expected = values(book).into_iter();
    Ok(count(&mut expected, |(name, value)| {
        let text = match &stated[name] {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        text == value
    }))
}

/// The markup of a fact in a page.
fn in_page(name: &str, value: &str) -> String {
    let mut text = String::new();
    posthaste_soap::write::text(value, &mut text);
    let row = |label: &str| format!("<td>{label}</td><td>{text}</td>");
    match name {
        "title" => format!("<h1>{text}</h1>"),
        "author" => format!("<p>by {text}</p>"),
        "description" => format!("<p>{text}</p>"),
        "isbn" => row("ISBN"),
        "publisher" => row("Publisher"),
        "subject" => row("Subject"),
        "published" => row("Published"),
        "pages" => row("Pages"),
        "price" => row("Price (EUR)"),
        _ => row("In stock"),
    }
}

#[cfg(test)]
mod tests {
    use posthaste_bookshop::Catalogue;
    use posthaste_units::Seed;

    use super::*;
    use crate::overload::facts::FACTS;

    #[test]
    fn every_form_states_every_fact_of_its_book_and_few_of_another() {
        let testbed = FormsTestbed::open(Seed(1), 1).unwrap();
        let catalogue = Catalogue::new(2, Seed(1));
        let [book, other] = catalogue.books() else {
            panic!("two books");
        };
        for form in ServiceForm::ALL {
            let answer = ask(form, testbed.shop.address(), &book.isbn).unwrap();
            assert_eq!(facts(form, &answer, book).unwrap(), FACTS, "{form:?}");
            let wrong = facts(form, &answer, other).unwrap();
            assert!(wrong < FACTS / 2, "{form:?}: {wrong}");
        }
    }

    #[test]
    fn a_call_that_fails_states_nothing() {
        let testbed = FormsTestbed::open(Seed(1), 1).unwrap();
        let book = &Catalogue::new(1, Seed(1)).books()[0].clone();
        // A valid number of no book: HTTP status 200, and a status of gRPC in the head.
        let answer = ask(ServiceForm::Grpc, testbed.shop.address(), "0306406152").unwrap();
        assert_eq!((answer.status, answer.grpc_status.as_deref()), (200, None));
        assert_eq!(facts(ServiceForm::Grpc, &answer, book).unwrap(), 0);
    }
}
