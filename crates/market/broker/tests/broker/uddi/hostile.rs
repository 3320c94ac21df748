//! Invalid answers of a registry are counted and logged, and block nobody.

use crate::support::send;
use crate::uddi::stand_in::{KIND, Mood, Registry, broker, counted, until};

#[test]
fn a_registry_that_talks_nonsense_is_counted_and_told() {
    let registry = Registry::open(3);
    let (broker, _folder) = broker(&registry, &[registry.address], &[KIND]);
    let failed = || counted(&broker, "uddi_rounds_total{outcome=\"failed\"}");
    let page = || send(broker.addr, "GET", "/", &[], "").body;
    let list = |namespace: &str| format!("<businessList xmlns='{namespace}'/>");
    for (mood, text) in [
        (
            Mood::Says("</s:Body></s:Envelope><!-- ".to_owned()),
            "replies with nothing",
        ),
        (Mood::Says("<!DOCTYPE a>".to_owned()), "DOCTYPE"),
        (Mood::Says(list("urn:uddi-org:api_v2")), "api_v2"),
        (
            Mood::Says("<s:Fault><faultstring>busy</faultstring></s:Fault>".to_owned()),
            "the registry fails: busy",
        ),
        (Mood::Says(" ".repeat(5 << 20)), "length limit exceeded"),
        (Mood::Endless, "length limit exceeded"),
    ] {
        registry.is(mood);
        let before = failed();
        until(text, || failed() > before && page().contains(text));
    }
    registry.is(Mood::Well);
    until("an answer", || !page().contains("It does not answer"));
}

#[test]
fn a_hanging_registry_delays_neither_replies_nor_the_end() {
    let registry = Registry::open(3);
    registry.is(Mood::Hangs);
    let (broker, _folder) = broker(&registry, &[registry.address], &[KIND]);
    let question = format!("{{\"type\":\"{KIND}\"}}");
    let answer = send(broker.addr, "POST", "/v1/best-offer", &[], &question);
    assert_eq!(answer.json()["considered"], 0);
    assert_eq!(counted(&broker, "uddi_rounds_total{outcome=\"ok\"}"), 0.0);
    broker.stop();
    broker.join();
}
