//! Documents: round trips in every form in use, and positions of errors.

use posthaste_qos::{
    Definition, Direction, Document, DocumentError, Info, Metric, Offer, Offers, Ontology,
    Priorities, Priority, Protocols, Requirement, Requires, Server, bounds,
};
use posthaste_soap::xml::{Scanner, Token};
use posthaste_units::{Rate, Ratio, Span};
use proptest::collection::vec;
use proptest::prelude::*;

use super::made::{any_offer, at, definition, euros, term};

const SAMPLE: &str = include_str!("../../schema/offers.wsqos");

fn refused(text: &str) -> String {
    Document::read(text.as_bytes()).expect_err(text).to_string()
}

/// A document with `inner` in its one offer.
fn in_offer(inner: &str) -> String {
    format!(
        "<wsqos><definition><offers><qosOffer name=\"Gold\" expires=\"2026-01-01T00:00:00Z\">\
         {inner}</qosOffer></offers></definition></wsqos>"
    )
}

#[test]
fn the_sample_says_what_it_says() {
    let Document::Offers(read) = Document::read(SAMPLE.as_bytes()).unwrap() else {
        panic!("no offers");
    };
    assert_eq!(read.includes, ["http://provider.example/more.wsqos"]);
    let gold = &read.offers[0];
    assert_eq!(
        (gold.name.as_str(), gold.expires),
        ("Gold", at("2036-01-31T12:00:00Z"))
    );
    let expected = Definition {
        default: Info {
            server: Server {
                processing_time: Some(Span::from_millis(200)),
                requests_per_second: Rate::per_second(50.0),
                reliability: Ratio::new(0.99),
                availability: Ratio::new(0.999),
                custom: Vec::new(),
            },
            transport: Priorities {
                delay: Priority::new(2),
                packet_loss: Priority::new(4),
                ..Priorities::default()
            },
            security: vec![Protocols {
                protocols: vec![super::made::term("TLS")],
                requires: Requires::All,
            }],
        },
        price: Some(euros("0.4")),
        ..gold.qos.clone()
    };
    assert_eq!(gold.qos, expected);
    let heavy = &gold.qos.operations["BookHeavy5"];
    assert_eq!(
        heavy.server.processing_time,
        Some(Span::from_micros(812_500))
    );
    assert_eq!(read.offers[1].name, "Silver");
}

#[test]
fn every_namespace_and_none_is_read() {
    let plain = in_offer("<price currency=\"EUR\">1</price>");
    let read = Document::read(plain.as_bytes()).unwrap();
    for namespace in posthaste_qos::NAMESPACES {
        let rooted = plain.replacen("<wsqos>", &format!("<q:wsqos xmlns:q=\"{namespace}\">"), 1);
        let rooted = rooted.replacen("</wsqos>", "</q:wsqos>", 1);
        assert_eq!(Document::read(rooted.as_bytes()).unwrap(), read, "{rooted}");
        let all = plain.replacen("<wsqos>", &format!("<wsqos xmlns=\"{namespace}\">"), 1);
        assert_eq!(Document::read(all.as_bytes()).unwrap(), read, "{all}");
    }
    let other = plain.replacen("<wsqos>", "<wsqos xmlns=\"urn:other\">", 1);
    assert_eq!(
        refused(&other),
        DocumentError::NotWsQos("wsqos".to_owned()).to_string()
    );
}

#[test]
fn instructions_are_passed_over() {
    let plain = in_offer("<price currency=\"EUR\">1</price>");
    let with = in_offer("<?a b?><price currency=\"EUR\"><?c?>1</price>");
    let document = format!("<?xml-stylesheet href='a.xsl'?>{with}");
    assert_eq!(
        Document::read(document.as_bytes()),
        Document::read(plain.as_bytes())
    );
}

#[test]
fn a_document_can_stand_inside_another() {
    let inner = in_offer("<price currency=\"EUR\">1</price>");
    let outer = format!("<service>{inner}<rest/></service>");
    let limits = posthaste_soap::Limits::default();
    let mut scanner = Scanner::new(&outer, &limits);
    scanner.token().unwrap();
    scanner.token().unwrap();
    assert_eq!(
        Document::read_from(&mut scanner),
        Document::read(inner.as_bytes())
    );
    assert!(matches!(scanner.token(), Ok(Token::Start(name)) if name.local == "rest"));
}

#[test]
fn an_ontology_is_read() {
    let text = "<wsqos><definition><ontology>\
        <metricDefinition name=\"age\" direction=\"dec\" unit=\"s\" percentile=\"95\"/>\
        <priorityDefinition name=\"colour\"><extension><any/></extension></priorityDefinition>\
        <protocolDefinition name=\"TLS\"/></ontology></definition></wsqos>";
    let metric = Metric {
        direction: Direction::Decreasing,
        unit: "s".to_owned(),
        percentile: Some(95.0),
    };
    let ontology = Ontology {
        metrics: [("age".to_owned(), metric)].into(),
        priorities: ["colour".to_owned()].into(),
        protocols: ["TLS".to_owned()].into(),
    };
    let document = Document::Ontology(ontology);
    assert_eq!(Document::read(text.as_bytes()), Ok(document.clone()));
    assert_eq!(Document::read(document.write().as_bytes()), Ok(document));
}

#[test]
fn wrong_values_are_refused_with_their_place_and_the_remedy() {
    let price = "<price currency=\"EUR\">1</price>";
    let server = |inner: &str| {
        let info = format!(
            "<defaultQoSInfo><serverQoSMetrics>{inner}</serverQoSMetrics></defaultQoSInfo>"
        );
        in_offer(&(info + price))
    };
    let cases = [
        (
            server("<processingTime>NaN</processingTime>"),
            "processingTime is \"NaN\": expected milliseconds, not negative, at most ten days",
        ),
        (
            server("<processingTime>-1</processingTime>"),
            "expected milliseconds, not negative, at most ten days",
        ),
        (
            server("<requestsPerSecond>inf</requestsPerSecond>"),
            "expected a number, not negative",
        ),
        (
            server("<requestsPerSecond>1e999</requestsPerSecond>"),
            "expected a number, not negative",
        ),
        (
            server("<reliability>1.01</reliability>"),
            "expected a share from 0 to 1",
        ),
        (
            server("<availability>99%</availability>"),
            "availability is \"99%\": expected a share from 0 to 1",
        ),
        (
            server("<availability>1</availability><availability>1</availability>"),
            "availability occurs twice",
        ),
        (
            server("<procesingTime>1</procesingTime>"),
            "<procesingTime> in serverQoSMetrics: expected processingTime, requestsPerSecond",
        ),
        (server("fast"), "fast in serverQoSMetrics"),
        (
            server("<customMetric name=\"age\">1</customMetric>"),
            "customMetric has no ontology",
        ),
    ];
    all_refused(&cases);
}

#[test]
fn missing_or_duplicate_elements_are_refused() {
    let price = "<price currency=\"EUR\">1</price>";
    let cases = [
        (in_offer(""), "qosOffer has no price"),
        (in_offer("<price>1</price>"), "price has no currency"),
        (
            in_offer("<price currency=\"euro\">1</price>"),
            "price@currency is \"euro\": expected three capital letters, such as EUR",
        ),
        (
            in_offer("<price currency=\"EUR\">-0.10</price>"),
            "price is \"-0.10\": expected a decimal number, not negative",
        ),
        (
            in_offer("<price currency=\"EUR\">0.0000001</price>"),
            "expected a decimal number",
        ),
        (in_offer(&price.repeat(2)), "price occurs twice"),
        (
            in_offer(&format!(
                "{price}<operationQoSInfo name=\"A\"/><operationQoSInfo name=\"A\"/>"
            )),
            "the operation \"A\" occurs twice",
        ),
        (
            in_offer(&format!("{price}<contractAndMonitoring requires=\"two\"/>")),
            "contractAndMonitoring@requires is \"two\": expected none, one or all",
        ),
        (
            in_offer(price).replace("T00:00:00Z", ""),
            "qosOffer@expires is \"2026-01-01\": expected a date, a time and a zone",
        ),
        (in_offer(price).replace("Gold", " "), "qosOffer has no name"),
        (
            "<wsqos/>".to_owned(),
            "wsqos has no definition with ontology, requirements or offers",
        ),
        ("<wsdl/>".to_owned(), "the root element is \"wsdl\""),
        (
            "<!DOCTYPE wsqos><wsqos/>".to_owned(),
            "a DOCTYPE is not allowed",
        ),
        (
            "<wsqos><definition><offers/><ontology/></definition></wsqos>".to_owned(),
            "the content of definition occurs twice",
        ),
        (in_offer(price) + "<again/>", "a second root element"),
    ];
    all_refused(&cases);
}

fn all_refused(cases: &[(String, &str)]) {
    for (text, wanted) in cases {
        let found = refused(text);
        assert!(found.contains(wanted), "{text}\n{found}\nwanted {wanted}");
    }
}

#[test]
fn two_offers_of_one_name_are_refused() {
    let one = in_offer("<price currency=\"EUR\">1</price>");
    let (start, end) = (
        one.find("<qosOffer").unwrap(),
        one.find("</offers>").unwrap(),
    );
    let two = one.replacen("</offers>", &format!("{}</offers>", &one[start..end]), 1);
    assert!(refused(&two).contains("the offer \"Gold\" occurs twice"));
}

#[test]
fn excessive_offers_are_refused_in_every_format() {
    let many = |inner: &str| in_offer(&format!("{inner}<price currency=\"EUR\">1</price>"));
    let operations: String = (0..=bounds::OPERATIONS)
        .map(|i| format!("<operationQoSInfo name=\"o{i}\"/>"))
        .collect();
    assert_eq!(refused(&many(&operations)), "129 operations: 128 at most");
    let long = format!(
        "<operationQoSInfo name=\"{}\"/>",
        "n".repeat(bounds::TEXT + 1)
    );
    assert_eq!(refused(&many(&long)), "513 bytes of a name: 512 at most");
    let protocols = "<protocol name=\"a\" ontology=\"b\"/>".repeat(bounds::LIST + 1);
    let contract = format!("<contractAndMonitoring>{protocols}</contractAndMonitoring>");
    assert_eq!(refused(&many(&contract)), "33 protocols: 32 at most");
    let json = serde_json::json!({
        "name": "Gold", "expires": "2026-01-01T00:00:00Z",
        "qos": { "contractAndMonitoring": [{ "protocol": vec![term("a"); bounds::LIST + 1], "requires": "all" }] },
    });
    let offer: Offer = serde_json::from_value(json).unwrap();
    assert_eq!(
        offer.check().unwrap_err().to_string(),
        "33 protocols: 32 at most"
    );
}

#[test]
fn json_has_the_same_names_and_is_as_strict() {
    let json = r#"{ "qos": {
        "defaultQoSInfo": {
            "serverQoSMetrics": { "processingTime": 200, "reliability": 0.99 },
            "transportQoSPriorities": { "packetLoss": 3 },
            "securityAndTransaction": [{ "protocol": [{ "name": "TLS", "ontology": "o" }], "requires": "one" }] },
        "price": { "amount": "0.40", "currency": "EUR" } } }"#;
    let read: Requirement = serde_json::from_str(json).unwrap();
    assert_eq!(
        read.qos.default.server.processing_time,
        Some(Span::from_millis(200))
    );
    assert_eq!(read.qos.price, Some(euros("0.40")));
    for (from, to, wanted) in [
        (
            "200",
            "-1",
            "expected milliseconds, not negative, at most ten days",
        ),
        ("200", "1e300", "expected milliseconds"),
        ("0.99", "1.5", "expected a share from 0 to 1"),
        (
            "\"packetLoss\": 3",
            "\"packetLoss\": 11",
            "a whole number from 0 to 10",
        ),
        ("\"0.40\"", "\"-1\"", "is not an amount"),
        ("EUR", "euros", "write three capital letters"),
        ("one", "two", "unknown variant `two`"),
        (
            "processingTime",
            "procesingTime",
            "unknown field `procesingTime`",
        ),
    ] {
        let wrong = json.replacen(from, to, 1);
        let found = serde_json::from_str::<Requirement>(&wrong)
            .unwrap_err()
            .to_string();
        assert!(found.contains(wanted), "{from} as {to}: {found}");
    }
}

proptest! {
    #[test]
    fn every_nanosecond_of_a_processing_time_is_kept(nanos in 0u64..=864_000_000_000_000) {
        let mut requirement = Requirement::default();
        requirement.qos.default.server.processing_time = Some(Span::from_nanos(nanos));
        let json = serde_json::to_string(&requirement).unwrap();
        prop_assert_eq!(serde_json::from_str::<Requirement>(&json).unwrap(), requirement.clone());
        let document = Document::Requirement(requirement);
        prop_assert_eq!(Document::read(document.write().as_bytes()), Ok(document));
    }

    #[test]
    fn offers_are_read_as_they_were_written(
        offers in vec(any_offer(), 0..3), includes in vec("[a-z<&\"]{1,9}", 0..2),
    ) {
        let mut offers = offers;
        for (i, offer) in offers.iter_mut().enumerate() {
            offer.name.push_str(&i.to_string());
            offer.qos.price = Some(offer.qos.price.unwrap_or(euros("0.123456")));
        }
        for offer in &offers {
            let json = serde_json::to_string(offer).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Offer>(&json).unwrap(), offer);
        }
        let document = Document::Offers(Offers { includes, offers });
        let xml = document.write();
        prop_assert_eq!(Document::read(xml.as_bytes()), Ok(document), "{}", xml);
    }

    #[test]
    fn requirements_are_read_as_they_were_written(name in "[a-z<&\"]{0,9}", qos in definition()) {
        let document = Document::Requirement(Requirement { name, qos });
        prop_assert_eq!(Document::read(document.write().as_bytes()), Ok(document));
    }
}
