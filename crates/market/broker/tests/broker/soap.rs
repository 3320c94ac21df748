//! SOAP interface.

use posthaste_qos::{Definition, Document, Info, Money, Requirement, Server};
use posthaste_soap::{reply, wsdl};
use posthaste_units::Span;

use crate::support::{TestBroker, TestReply, offer};

fn call(shop: &TestBroker, operation: &str, inner: &str) -> TestReply {
    let body = format!(
        "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body><{operation} xmlns=\"urn:posthaste:broker\">{inner}</{operation}></s:Body></s:Envelope>"
    );
    let action = format!("SOAPAction: \"urn:posthaste:broker/{operation}\"");
    shop.send(
        "POST",
        "/soap",
        &["Content-Type: text/xml; charset=utf-8", &action],
        &body,
    )
}

/// Document that requires a processing time of at most `milliseconds`, as embedded in a message.
fn requirements(milliseconds: u64) -> String {
    let server = Server {
        processing_time: Some(Span::from_millis(milliseconds)),
        ..Server::default()
    };
    let price = Money::new("1", "EUR".parse().unwrap()).ok();
    let qos = Definition {
        default: Info {
            server,
            ..Info::default()
        },
        price,
        ..Definition::default()
    };
    let mut out = String::new();
    Document::Requirement(Requirement {
        qos,
        ..Requirement::default()
    })
    .write_into(&mut out);
    format!("<tModelKey>books</tModelKey><requirements>{out}</requirements>")
}

#[test]
fn the_best_offer_is_a_document_in_the_reply() {
    let shop = TestBroker::open();
    shop.put(&offer("Slow", 10, 900));
    shop.put(&offer("Good", 30, 200));
    let reply = call(&shop, "GetBestOffer", &requirements(300));
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert!(
        reply.body.contains("<b:provider>ada</b:provider>"),
        "{}",
        reply.body
    );
    let start = reply.body.find("<b:offer>").unwrap() + "<b:offer>".len();
    let end = reply.body.find("</b:offer>").unwrap();
    let Document::Offers(offers) = Document::read(&reply.body.as_bytes()[start..end]).unwrap()
    else {
        panic!("{}", reply.body);
    };
    assert_eq!(offers.offers[0].name, "Good");
}

#[test]
fn objections_to_offers_are_in_the_reply() {
    let shop = TestBroker::open();
    shop.put(&offer("Slow", 10, 900));
    let reply = call(&shop, "GetBestOffer", &requirements(300));
    let text =
        "<b:reason>ada, Slow: processing time: 900ms offered, at most 300ms wanted</b:reason>";
    assert!(reply.body.contains(text), "{}", reply.body);
}

#[test]
fn lists_and_places_can_be_asked_for() {
    let shop = TestBroker::open();
    shop.put(&offer("Good", 30, 200));
    let info = call(&shop, "AvailableOffersInfo", "<tModelKey>books</tModelKey>").body;
    assert!(
        info.contains("<b:name>Good</b:name><b:price>0.30</b:price><b:currency>EUR</b:currency>"),
        "{info}"
    );
    assert!(
        call(&shop, "GetTrustedProviders", "")
            .body
            .contains("<b:provider>ada</b:provider>")
    );
    let location = format!("<b:location>{}/soap</b:location>", shop.url());
    assert!(
        call(&shop, "GetRegistryLocation", "")
            .body
            .contains(&location)
    );
}

#[test]
fn invalid_calls_get_a_fault() {
    let shop = TestBroker::open();
    for (operation, inner, text) in [
        (
            "GetBestOffer",
            "<tModelKey>books</tModelKey>",
            "there are no requirements",
        ),
        ("GetBestOffer", "<requirements/>", "there is no tModelKey"),
        (
            "GetBestOffer",
            "<tModelKey>b</tModelKey><requirements/>",
            "one element wsqos",
        ),
        (
            "GetBestOffer",
            "<tModelKey>b</tModelKey><requirements><wsqos xmlns=\"\"><definition><offers/></definition></wsqos></requirements>",
            "no requirements in the document",
        ),
        ("GetWorstOffer", "", "there is no operation"),
    ] {
        let reply = call(&shop, operation, inner);
        assert_eq!(reply.status, 500, "{}", reply.body);
        let fault = reply::inspect(reply.body.as_bytes());
        assert!(format!("{fault:?}").contains(text), "{inner}: {fault:?}");
    }
    let wrong = shop.send("POST", "/soap", &["Content-Type: application/json"], "{}");
    assert_eq!(wrong.status, 415);
    assert_eq!(shop.send("GET", "/soap", &[], "").status, 405);
}

#[test]
fn the_description_describes_what_there_is() {
    let shop = TestBroker::open();
    let text = shop.send("GET", "/soap?wsdl", &[], "").body;
    assert!(text.contains("http://b/soap"), "{text}");
    let description = wsdl::read(text.as_bytes()).unwrap();
    let shown = format!("{description:?}");
    for operation in [
        "GetBestOffer",
        "AvailableOffersInfo",
        "GetTrustedProviders",
        "GetRegistryLocation",
    ] {
        assert!(shown.contains(operation), "{shown}");
    }
}
