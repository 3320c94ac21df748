//! Discounts for clients that leave compression to the gateway, and their publication in advance.

use posthaste_qos::index::Index;
use posthaste_qos::{Definition, Document, Ontologies, Rates, Requirement};
use serde_json::Value;

use crate::priced::{DEAR, Priced, metrics, promise};
use crate::support::{TestOrigin, field, get, wait_until};

const OPEN: &str = "Accept-Encoding: gzip\r\n";
const ASKS: &str = "Accept-Encoding: gzip\r\nPrefer: compression=always\r\n";
const REFUSES: &str = "Accept-Encoding: identity\r\n";

/// A gateway with price 1.00, or half for clients that leave compression open.
fn busy(more: &str) -> Priced {
    let shop = Priced::new("1.0", &format!("{DEAR}discount = \"50%\"\n{more}"));
    shop.until(|price| price >= 1.0);
    shop
}

#[test]
fn only_requests_that_leave_compression_open_pay_less() {
    let shop = busy("");
    let answer = |fields: String| {
        let reply = shop.get(&fields);
        let offer = match reply.status {
            200 => field(&reply.head, "price"),
            402 => field(&reply.head, "current-offer"),
            status => panic!("{status}: {fields}"),
        };
        (reply.status, offer.unwrap().to_owned())
    };
    let full = (402, "standard@1.00;price=\"1.00 eur\"".to_owned());
    let half = (402, "standard-open@0.50;price=\"0.50 eur\"".to_owned());
    let paid = |price: &str| (200, price.to_owned());
    for open in [
        OPEN,
        "Prefer: compression=if-possible\r\n",
        "Accept-Encoding: br, identity\r\n",
    ] {
        assert_eq!(
            answer(format!("{open}Max-Price: 0.50 EUR\r\n")),
            paid("0.50 eur")
        );
        assert_eq!(answer(format!("{open}Max-Price: 0.49 EUR\r\n")), half);
        for offer in ["standard-open@0.50", "standard@1.00"] {
            let selects = format!("{open}Selected-Offer: {offer}\r\n");
            assert_eq!(answer(selects), paid("0.50 eur"));
        }
    }
    for other in [
        ASKS,
        REFUSES,
        "Save-Data: on\r\n",
        "Accept-Encoding: gzip, identity;q=0\r\n",
        // This client leaves no choice to the gateway.
        "",
        "Accept-Encoding: compress\r\nPrefer: compression=if-possible\r\n",
    ] {
        assert_eq!(answer(format!("{other}Max-Price: 0.99 EUR\r\n")), full);
        assert_eq!(
            answer(format!("{other}Selected-Offer: standard-open@0.50\r\n")),
            full
        );
        assert_eq!(
            answer(format!("{other}Max-Price: 9 EUR\r\n")),
            paid("1.00 eur")
        );
    }
    assert!(metrics(&shop.gateway)("turned_away_total{reason=\"not-open\"}") >= 6.0);

    let call = |compression: &str| {
        let header = format!(
            "<p:compression xmlns:p='urn:posthaste:wsqos' form='body'>{compression}</p:compression>\
             <q:WSQoSSoapHeader xmlns:q='http://wsqos.org/'><selectedOffer>standard-open@0.50\
             </selectedOffer></q:WSQoSSoapHeader>"
        );
        // The Body is compressed with gzip regardless of Accept-Encoding.
        shop.call("Accept-Encoding: compress\r\n", &header)
    };
    let open = call("if-possible");
    assert_eq!(
        (open.status, field(&open.head, "price")),
        (200, Some("0.50 eur"))
    );
    let asks = String::from_utf8(call("always").body).unwrap();
    assert!(
        asks.contains("leave it open") && asks.contains("standard@1.00"),
        "{asks}"
    );
}

#[test]
fn a_reduced_quote_admits_only_requests_with_open_compression() {
    let shop = busy("life = \"60s\"\nburst = 9\n");
    let first = shop.fields(&format!("X-Client: ann\r\nMax-Price: 0.50 EUR\r\n{OPEN}"));
    assert_eq!(first("price").as_deref(), Some("0.50 EUR"));
    let quote = first("quote").expect("a quote");
    let token = quote.split(';').next().unwrap();
    let with = |fields: &str| shop.get(&format!("X-Client: ann\r\nQuote: {token}\r\n{fields}"));
    for other in [ASKS, REFUSES] {
        assert_eq!(with(other).status, 402);
        let pays = with(&format!("{other}Max-Price: 2 EUR\r\n"));
        assert_eq!(
            (pays.status, field(&pays.head, "price")),
            (200, Some("1.00 eur"))
        );
    }
    let own = with(OPEN);
    assert_eq!(
        (own.status, field(&own.head, "price")),
        (200, Some("0.50 eur"))
    );
    let count = metrics(&shop.gateway);
    assert_eq!(count("turned_away_total{reason=\"not-open\"}"), 2.0);
    assert_eq!(count("entered_total{by=\"quote\"}"), 1.0);
}

#[test]
fn both_offers_and_the_outcome_of_the_client_are_reported() {
    let shop = busy("");
    shop.get(&format!("X-Client: ann\r\nMax-Price: 1 EUR\r\n{OPEN}"));
    let reply = get(&shop.gateway, "/.well-known/wsqos", "X-Client: ann\r\n");
    let document: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(document["current"]["offer"], "standard@1.00", "{document}");
    assert_eq!(
        document["open"]["offer"], "standard-open@0.50",
        "{document}"
    );
    assert_eq!(document["open"]["price"], "0.50 EUR", "{document}");
    let yours = &document["you"][0];
    assert_eq!(yours["offer"], "standard-open@0.50", "{document}");
    assert_eq!(yours["served"], 1, "{document}");
}

#[test]
fn the_broker_finds_the_reduced_offer_only_for_open_requests() {
    let broker = TestOrigin::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let token = tempfile::NamedTempFile::new().unwrap();
    let file = promise("<serverQoSMetrics><availability>0.9</availability></serverQoSMetrics>");
    let shop = busy(&format!(
        "promise = {:?}\n[prices.broker]\nurl = \"http://{}\"\ntype = \"books\"\nprovider = \"ada\"\ntoken = {:?}\n",
        file.path(),
        broker.address,
        token.path(),
    ));
    let mut published = String::new();
    wait_until("the offers of a busy shop", || {
        published = broker.last_request();
        shop.price() >= 1.0 && published.contains("standard@1.00")
    });
    let (_, document) = published.split_once("\r\n\r\n").unwrap();
    let Document::Offers(offers) = Document::read(document.as_bytes()).unwrap() else {
        panic!("{document}")
    };
    let mut index = Index::new(Rates::new("EUR".parse().unwrap()), Ontologies::default());
    for offer in &offers.offers {
        assert_eq!(
            offer
                .qos
                .default
                .server
                .availability
                .map(|share| share.get()),
            Some(0.9)
        );
        index.put("books", "ada", offer).unwrap();
    }
    // As in docs/reference/prices.md.
    let open = r#"{"qos": {"defaultQoSInfo": {"securityAndTransaction": [{"protocol": [{"name": "open-compression", "ontology": "urn:posthaste:wsqos"}]}]}}}"#;
    let open: Requirement = serde_json::from_str(open).unwrap();
    let now = offers.offers[0].expires - std::time::Duration::from_secs(1);
    let found = |wanted: &Definition| -> Vec<String> {
        let found = index.adequate("books", wanted, now);
        found.map(|found| found.offer.name).collect()
    };
    assert_eq!(found(&Definition::default()), ["standard@1.00"]);
    assert_eq!(found(&open.qos), ["standard-open@0.50", "standard@1.00"]);
}
