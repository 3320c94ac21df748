//! Offers of registered services can be found as long as the services are registered.

use crate::fetching::Provider;
use crate::support::{offer, send};
use crate::uddi::stand_in::{KIND, Mood, Registry, broker, broker_in, counted, offers, until};

fn found(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, at)| (name.to_string(), at.to_string()))
        .collect()
}

fn ask(at: std::net::SocketAddr) -> serde_json::Value {
    let question = serde_json::json!({ "type": KIND, "requirements": { "qos": {} } });
    send(at, "POST", "/v1/best-offer", &[], &question.to_string()).json()
}

#[test]
fn the_first_question_for_a_type_fetches_its_offers() {
    for version in [2, 3] {
        let (registry, provider) = (Registry::open(version), Provider::open());
        let at = |path: &str| format!("http://{}{path}", provider.address);
        provider.has("/ada", &[], vec![offer("Gold", 40, 100)]);
        provider.has("/bob?wsdl", &[], vec![offer("Bronze", 10, 900)]);
        provider.has("/bob2", &[], vec![offer("Iron", 20, 900)]);
        registry.state.lock().unwrap().trusted = vec!["uddi:bob".to_owned()];
        registry.holds(&[
            (
                "s1",
                "uddi:ada",
                "http://ada.example/".to_owned(),
                Some(at("/ada")),
            ),
            ("s2", "uddi:bob", at("/bob"), None),
            // On the second page, if the version has pages.
            (
                "s3",
                "uddi:bob",
                "http://bob.example/".to_owned(),
                Some(at("/bob2")),
            ),
        ]);
        let (broker, _folder) = broker(&registry, &[provider.address], &[]);
        assert_eq!(ask(broker.addr)["considered"], 0);
        let bob = at("/bob");
        let all = found(&[
            ("Bronze", &bob),
            ("Iron", "http://bob.example/"),
            ("Gold", "http://ada.example/"),
        ]);
        until("all offers", || offers(&broker) == all);
        let best = ask(broker.addr);
        assert_eq!(best["provider"], "uddi:bob");
        assert_eq!(best["offer"]["endpoint"], bob);
        let soap = |operation: &str, inner: &str| {
            let text = format!(
                "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><{operation} xmlns='urn:posthaste:broker'>{inner}</{operation}></s:Body></s:Envelope>"
            );
            send(
                broker.addr,
                "POST",
                "/soap",
                &["Content-Type: text/xml", "SOAPAction: \"\""],
                &text,
            )
            .body
        };
        let wanted = format!(
            "<tModelKey>{KIND}</tModelKey><requirements><wsqos xmlns=''><definition><requirements/></definition></wsqos></requirements>"
        );
        let best = soap("GetBestOffer", &wanted);
        assert!(
            best.contains(&format!("<b:endpoint>{bob}</b:endpoint>")),
            "{best}"
        );
        let trusted = soap("GetTrustedProviders", "");
        assert!(
            trusted.contains("<b:provider>uddi:ada</b:provider><b:provider>uddi:bob</b:provider>"),
            "{trusted}"
        );
        let location = soap("GetRegistryLocation", "");
        assert!(
            location.contains(&format!("<b:location>{}</b:location>", registry.url())),
            "{location}"
        );
    }
}

#[test]
fn a_question_for_what_is_no_key_is_not_passed_on() {
    let registry = Registry::open(3);
    let (broker, _folder) = broker(&registry, &[registry.address], &[]);
    send(
        broker.addr,
        "POST",
        "/v1/best-offer",
        &[],
        "{\"type\":\"books\"}",
    );
    send(
        broker.addr,
        "POST",
        "/v1/best-offer",
        &[],
        "{\"type\":\"uddi:x\"}",
    );
    let requested = |text: &str| {
        registry
            .state
            .lock()
            .unwrap()
            .requested
            .iter()
            .any(|request| request.contains(text))
    };
    until("the one that is a key", || requested("<tModelKey>uddi:x<"));
    assert!(!requested("<tModelKey>books<"));
}

#[test]
fn the_document_of_a_type_is_fetched_unless_it_is_elsewhere() {
    for version in [2, 3] {
        let (registry, provider) = (Registry::open(version), Provider::open());
        let inside = Provider::open();
        let at = |provider: &Provider, path: &str| format!("http://{}{path}", provider.address);
        let names = |url| registry.state.lock().unwrap().overview = Some(url);
        let of_type = vec![offer("Bronze", 1, 100), offer("Common", 30, 100)];
        provider.has("/type", &[], of_type);
        provider.has("/zoe?wsdl", &[], vec![offer("Bronze", 10, 900)]);
        names(at(&provider, "/type"));
        registry.state.lock().unwrap().trusted = vec!["uddi:zoe".to_owned()];
        let zoe = at(&provider, "/zoe");
        registry.holds(&[("s1", "uddi:zoe", zoe.clone(), None)]);
        let (broker, _folder) = broker(&registry, &[provider.address], &[KIND]);
        let both = found(&[("Bronze", &zoe), ("Common", &zoe)]);
        until("both documents", || offers(&broker) == both);
        // The provider's own document takes precedence.
        assert_eq!(ask(broker.addr)["offer"]["qos"]["price"]["amount"], "0.10");
        names(at(&inside, "/type"));
        let own = &both[..1];
        until("its own offer alone", || offers(&broker) == own);
        assert_eq!(*inside.requested.lock().unwrap(), [""; 0]);
        // A description without offers is not an error.
        let wsdl = "<definitions xmlns='http://schemas.xmlsoap.org/wsdl/'/>";
        let described = ("/plain".to_owned(), wsdl.to_owned());
        provider.documents.lock().unwrap().extend([described]);
        names(at(&provider, "/plain"));
        let requested = || {
            provider
                .requested
                .lock()
                .unwrap()
                .contains(&"/plain".to_owned())
        };
        until("the description is read", requested);
        provider.requested.lock().unwrap().clear();
        until("the description is read again", requested);
        assert_eq!(offers(&broker), own);
        assert_eq!(counted(&broker, "fetches_total{outcome=\"failed\"}"), 0.0);
    }
}

#[test]
fn nobody_is_fetched_from_who_is_not_trusted_or_elsewhere() {
    let (registry, allowed, inside) = (Registry::open(3), Provider::open(), Provider::open());
    let at = |provider: &Provider, path: &str| format!("http://{}{path}", provider.address);
    allowed.has("/good", &[], vec![offer("Good", 40, 100)]);
    allowed.has("/eve", &[], vec![offer("Evil", 1, 1)]);
    inside.has("/secret", &[], vec![offer("Secret", 1, 1)]);
    let service = "http://service.example/".to_owned();
    registry.holds(&[
        (
            "s1",
            "uddi:eve",
            service.clone(),
            Some(at(&allowed, "/eve")),
        ),
        (
            "s2",
            "uddi:ada",
            service.clone(),
            Some(at(&inside, "/secret")),
        ),
        ("s3", "uddi:ada", at(&inside, "/soap"), None),
        (
            "s4",
            "uddi:ada",
            service.clone(),
            Some(at(&allowed, "/good")),
        ),
    ]);
    let (broker, _folder) = broker(&registry, &[allowed.address], &[KIND]);
    until("what is good", || {
        offers(&broker) == found(&[("Good", &service)])
    });
    assert_eq!(*inside.requested.lock().unwrap(), [""; 0]);
    assert!(
        !allowed
            .requested
            .lock()
            .unwrap()
            .contains(&"/eve".to_owned())
    );
    let services = |state: &str| counted(&broker, &format!("uddi_services{{state=\"{state}\"}}"));
    assert_eq!(
        [
            services("taken"),
            services("untrusted"),
            services("elsewhere")
        ],
        [1.0, 1.0, 2.0]
    );
}

#[test]
fn offers_stay_during_an_outage_and_end_when_unregistered() {
    let (registry, provider) = (Registry::open(3), Provider::open());
    let document = |path: &str| Some(format!("http://{}{path}", provider.address));
    provider.has("/a", &[], vec![offer("Gold", 40, 100)]);
    provider.has("/b", &[], vec![offer("Silver", 20, 100)]);
    let both = [
        (
            "a",
            "uddi:ada",
            "http://a.example/".to_owned(),
            document("/a"),
        ),
        (
            "b",
            "uddi:ada",
            "http://b.example/".to_owned(),
            document("/b"),
        ),
    ];
    registry.holds(&both);
    let (broker, _folder) = broker(&registry, &[provider.address], &[KIND]);
    let (gold, silver) = (
        ("Gold", "http://a.example/"),
        ("Silver", "http://b.example/"),
    );
    until("both", || offers(&broker) == found(&[silver, gold]));
    registry.is(Mood::Says("<html/>".to_owned()));
    let failed = || counted(&broker, "uddi_rounds_total{outcome=\"failed\"}");
    until("a failure", || failed() > 0.0);
    let page = || send(broker.addr, "GET", "/", &[], "").body;
    assert!(
        page().contains("It does not answer: the registry replies with &quot;html&quot;"),
        "{}",
        page()
    );
    // Offers are still fetched.
    provider.has("/b", &[], vec![offer("Silver", 60, 100)]);
    until("a new price", || offers(&broker) == found(&[gold, silver]));
    registry.holds(&both[..1]);
    registry.is(Mood::Well);
    until("one", || offers(&broker) == found(&[gold]));
    assert!(!page().contains("It does not answer"));
    registry.holds(&[]);
    until("none", || offers(&broker).is_empty());
}

#[test]
fn remembered_types_are_fetched_again_once_a_client_asks() {
    let (registry, provider) = (Registry::open(3), Provider::open());
    let document = Some(format!("http://{}/a", provider.address));
    let at = "http://a.example/";
    provider.has("/a", &[], vec![offer("Gold", 40, 100)]);
    registry.holds(&[("a", "uddi:ada", at.to_owned(), document)]);
    let (first, folder) = broker(&registry, &[provider.address], &[]);
    assert_eq!(ask(first.addr)["considered"], 0);
    until("the offer", || offers(&first) == found(&[("Gold", at)]));
    first.stop();
    first.join();
    provider.has("/a", &[], vec![offer("Silver", 20, 100)]);
    let second = broker_in(folder.path(), &registry, &[provider.address], &[]);
    assert_eq!(ask(second.addr)["offer"]["name"], "Gold");
    until("what is offered now", || {
        offers(&second) == found(&[("Silver", at)])
    });
}

#[test]
fn providers_that_lose_trust_lose_their_offers() {
    let (registry, provider) = (Registry::open(3), Provider::open());
    provider.has("/b", &[], vec![offer("Bronze", 10, 900)]);
    let document = format!("http://{}/b", provider.address);
    registry.holds(&[(
        "s",
        "uddi:bob",
        "http://b.example/".to_owned(),
        Some(document),
    )]);
    registry.state.lock().unwrap().trusted = vec!["uddi:bob".to_owned()];
    let (broker, _folder) = broker(&registry, &[provider.address], &[KIND]);
    until("an offer", || offers(&broker).len() == 1);
    registry.state.lock().unwrap().trusted.clear();
    until("none", || offers(&broker).is_empty());
}

#[test]
fn a_silent_service_keeps_its_offers_and_the_others_go_on() {
    let (registry, provider) = (Registry::open(3), Provider::open());
    let document = |path: &str| Some(format!("http://{}{path}", provider.address));
    provider.has("/a", &[], vec![offer("Gold", 40, 100)]);
    provider.has("/b", &[], vec![offer("Silver", 20, 100)]);
    registry.holds(&[
        (
            "a",
            "uddi:ada",
            "http://a.example/".to_owned(),
            document("/a"),
        ),
        (
            "b",
            "uddi:ada",
            "http://b.example/".to_owned(),
            document("/b"),
        ),
    ]);
    let (broker, _folder) = broker(&registry, &[provider.address], &[KIND]);
    let (gold, silver) = (
        ("Gold", "http://a.example/"),
        ("Silver", "http://b.example/"),
    );
    until("both", || offers(&broker) == found(&[silver, gold]));
    provider
        .documents
        .lock()
        .unwrap()
        .insert("/a".to_owned(), "<wsqos".to_owned());
    provider.has("/b", &[], vec![offer("Tin", 60, 100)]);
    until("the other's", || {
        offers(&broker) == found(&[gold, ("Tin", "http://b.example/")])
    });
    // On a name conflict the first document's offer stays.
    provider.has("/a", &[], vec![offer("Gold", 40, 100)]);
    provider.has("/b", &[], vec![offer("Gold", 10, 100)]);
    let failed = || counted(&broker, "fetches_total{outcome=\"failed\"}");
    let before = failed();
    until("a failure", || failed() > before + 2.0);
    let prices = || {
        send(
            broker.addr,
            "GET",
            &format!("/v1/offers/{KIND}/uddi:ada/Gold"),
            &[],
            "",
        )
        .json()["qos"]["price"]["amount"]
            .clone()
    };
    assert_eq!(prices(), "0.40");
}
