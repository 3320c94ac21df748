//! Registration keeps existing entries.

use posthaste_broker::{Enrolled, Enrolment, UddiVersion, enrol};

use crate::uddi::stand_in::{KIND, Mood, Registry};

fn enrolment(registry: &Registry) -> Enrolment {
    let pair = |key: &str| (key.to_owned(), "Books".to_owned());
    Enrolment {
        version: UddiVersion::V3,
        inquiry: registry.url(),
        publish: registry.url(),
        security: registry.url(),
        user: "ada".to_owned(),
        password: "a <secret>".to_owned(),
        business: pair("uddi:ada"),
        service: pair("uddi:ada:books"),
        kind: KIND.to_owned(),
        wsdl: None,
        endpoint: "http://a.example/".to_owned(),
        offers: Some("http://a.example/offers".to_owned()),
    }
}

/// Names of the requests to the registry since the last call.
fn requested(registry: &Registry) -> Vec<String> {
    let mut state = registry.state.lock().unwrap();
    let names = state.requested.drain(..);
    names
        .map(|request| request[1..].split(' ').next().unwrap().to_owned())
        .collect()
}

fn service(saved: bool) -> Enrolled {
    Enrolled {
        entity: "service",
        key: "uddi:ada:books".to_owned(),
        saved,
    }
}

#[test]
fn a_service_is_saved_once_and_what_is_there_stays() {
    let registry = Registry::open(3);
    registry.state.lock().unwrap().trusted = vec!["uddi:ada".to_owned()];
    let done = enrol(&enrolment(&registry)).unwrap();
    let names: Vec<_> = done.iter().map(|done| (done.entity, done.saved)).collect();
    // The business exists under another name, and so does a type.
    assert_eq!(names[..2], [("tModel", false), ("business", false)]);
    assert_eq!(done.last(), Some(&service(true)));
    let requests = requested(&registry);
    assert!(
        requests.contains(&"save_service".to_owned())
            && !requests.contains(&"save_business".to_owned())
    );
    assert_eq!(requests.last().unwrap(), "discard_authToken");
    let same = (
        "uddi:ada:books",
        "uddi:ada",
        "http://a.example/".to_owned(),
        Some("http://a.example/offers".to_owned()),
    );
    registry.holds(std::slice::from_ref(&same));
    assert_eq!(
        enrol(&enrolment(&registry)).unwrap().last(),
        Some(&service(false))
    );
    assert!(
        !requested(&registry)
            .iter()
            .any(|request| request.starts_with("save"))
    );
    registry.holds(&[(
        same.0,
        same.1,
        "http://elsewhere.example/".to_owned(),
        same.3,
    )]);
    assert_eq!(
        enrol(&enrolment(&registry)).unwrap().last(),
        Some(&service(true))
    );
}

#[test]
fn a_missing_type_is_registered_with_wsdl_and_key_generator() {
    let registry = Registry::open(3);
    let kind = "uddi:types:other".to_owned();
    let unknown = Enrolment {
        kind,
        ..enrolment(&registry)
    };
    let error = enrol(&unknown).unwrap_err().to_string();
    assert!(
        error.contains("there is no type \"uddi:types:other\": state the URL of its WSDL"),
        "{error}"
    );
    assert_eq!(requested(&registry).last().unwrap(), "discard_authToken");
    let wsdl = Some("http://a.example/?wsdl".to_owned());
    let done = enrol(&Enrolment { wsdl, ..unknown }).unwrap();
    let keys: Vec<&str> = done.iter().map(|done| done.key.as_str()).collect();
    assert_eq!(keys[..2], ["uddi:types:keygenerator", "uddi:types:other"]);
}

#[test]
fn in_version_2_what_is_there_is_known_by_its_name() {
    let registry = Registry::open(2);
    let named = |name: &str| (String::new(), name.to_owned());
    let wanted = Enrolment {
        version: UddiVersion::V2,
        business: named("Ada"),
        service: named("Books"),
        kind: "Inventory".to_owned(),
        wsdl: Some("http://a.example/?wsdl".to_owned()),
        ..enrolment(&registry)
    };
    let outcome = |wanted: &Enrolment| -> Vec<(&str, String, bool)> {
        let done = enrol(wanted).unwrap().into_iter();
        done.map(|done| (done.entity, done.key, done.saved))
            .collect()
    };
    let all = |saved| {
        ["tModel", "business", "service"]
            .into_iter()
            .zip(0..)
            .map(|(entity, number)| (entity, format!("uuid:{number}"), saved))
            .collect::<Vec<_>>()
    };
    assert_eq!(outcome(&wanted), all(true));
    assert_eq!(outcome(&wanted), all(false));
    // The key of the type suffices. A changed service keeps its key.
    let moved = Enrolment {
        kind: "uuid:0".to_owned(),
        wsdl: None,
        endpoint: "http://b.example/".to_owned(),
        ..wanted.clone()
    };
    let done = outcome(&moved);
    assert_eq!(done[..2], all(false)[..2]);
    assert_eq!(done[2], all(true)[2]);
    assert_eq!(outcome(&moved), all(false));
    let another = Enrolment {
        service: named("Maps"),
        ..wanted
    };
    assert_eq!(outcome(&another)[2], ("service", "uuid:3".to_owned(), true));
    // The key of the business suffices too, if the registry has assigned it.
    let keyed = |key: &str| Enrolment {
        business: (key.to_owned(), "Ada".to_owned()),
        ..another.clone()
    };
    assert!(outcome(&keyed("uuid:1")).iter().all(|(.., saved)| !saved));
    let kind = "uuid:9".to_owned();
    for unknown in [
        keyed("uuid:9"),
        Enrolment {
            kind,
            ..another.clone()
        },
    ] {
        let error = enrol(&unknown).unwrap_err().to_string();
        assert!(
            error.contains("\"uuid:9\", and a registry of version 2"),
            "{error}"
        );
    }
}

#[test]
fn errors_of_the_registry_are_reported() {
    let registry = Registry::open(3);
    registry.is(Mood::Says(
        "<s:Fault><faultstring>who are you</faultstring></s:Fault>".to_owned(),
    ));
    let error = enrol(&enrolment(&registry)).unwrap_err().to_string();
    assert_eq!(
        error,
        "the registration in the UDDI registry has failed: the registry fails: who are you"
    );
}
