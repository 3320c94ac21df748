//! Saved entities equal the entities in the registry's reply, in either version.

use posthaste_broker::uddi::messages::{
    BindingTemplate, Business, BusinessService, Category, Interface, TModel, Version, reply,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Text without leading or trailing blanks, which registries do not keep.
fn text() -> impl Strategy<Value = String> {
    "[!-~é]([ -~é]{0,12}[!-~é])?"
}

prop_compose! {
    fn category()(tmodel in text(), name in text(), value in text()) -> Category {
        Category { tmodel, name, value }
    }
}

prop_compose! {
    fn interface()(tmodel in text(), overview in option::of(text())) -> Interface {
        Interface { tmodel, overview }
    }
}

prop_compose! {
    fn binding()(key in text(), endpoint in option::of(text()), interfaces in vec(interface(), 0..3)) -> BindingTemplate {
        BindingTemplate { key, endpoint, interfaces }
    }
}

prop_compose! {
    fn service()(key in text(), business in text(), name in text(), bindings in vec(binding(), 0..3)) -> BusinessService {
        BusinessService { key, business, name, bindings }
    }
}

/// Converts a save request to the reply with the same content.
fn reply_to(request: &str, saved: &str, detail: &str) -> Vec<u8> {
    let reply = request.replace(&format!("<{saved} "), &format!("<{detail} "));
    reply
        .replace(&format!("</{saved}>"), &format!("</{detail}>"))
        .into_bytes()
}

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V2), Just(Version::V3)]
}

proptest! {
    #[test]
    fn services_are_read_as_they_are_written(version in version(), service in service()) {
        let reply = reply_to(&version.save_service("t", &service), "save_service", "serviceDetail");
        prop_assert_eq!(reply::services(&reply, version), Ok(vec![service]));
    }

    #[test]
    fn businesses_are_read_as_they_are_written(
        version in version(), key in text(), name in text(), categories in vec(category(), 0..3),
    ) {
        let business = Business { key, name, categories };
        let reply = reply_to(&version.save_business("t", &business), "save_business", "businessDetail");
        prop_assert_eq!(reply::businesses(&reply, version), Ok(vec![business]));
    }

    #[test]
    fn types_are_read_as_they_are_written(
        version in version(), key in text(), name in text(), overview in option::of(text()),
        categories in vec(category(), 0..3),
    ) {
        let tmodel = TModel { key, name, overview, categories };
        let reply = reply_to(&version.save_tmodel("t", &tmodel), "save_tModel", "tModelDetail");
        prop_assert_eq!(reply::tmodels(&reply, version), Ok(vec![tmodel]));
    }
}

#[test]
fn requests_differ_between_the_versions_where_the_versions_do() {
    let (second, third) = (
        Version::V2.find_service("k", 1),
        Version::V3.find_service("k", 101),
    );
    let within = |text: &str| {
        text.split_once("<soap:Body>")
            .unwrap()
            .1
            .split_once("</soap:Body>")
            .unwrap()
            .0
            .to_owned()
    };
    let bag = "<tModelBag><tModelKey>k</tModelKey></tModelBag></find_service>";
    assert_eq!(
        within(&second),
        format!("<find_service xmlns=\"urn:uddi-org:api_v2\" generic=\"2.0\">{bag}")
    );
    assert_eq!(
        within(&third),
        format!(
            "<find_service xmlns=\"urn:uddi-org:api_v3\" maxRows=\"100\" listHead=\"101\">{bag}"
        )
    );
    assert_eq!(
        within(&Version::V3.get_service_detail(["a", "b&c"])),
        "<get_serviceDetail xmlns=\"urn:uddi-org:api_v3\"><serviceKey>a</serviceKey><serviceKey>b&amp;c</serviceKey></get_serviceDetail>"
    );
}
