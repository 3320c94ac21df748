//! Replies of registries.

use posthaste_broker::uddi::messages::reply::{self, ListPage, ReplyError, Rest};
use posthaste_broker::uddi::messages::{BindingTemplate, BusinessService, Interface, Version};

use super::envelope;

fn list(count: &str, keys: &[&str], truncated: bool) -> String {
    let infos: String = keys
        .iter()
        .map(|key| format!("<u:serviceInfo serviceKey=\"{key}\" businessKey=\"b\"><u:name>N</u:name></u:serviceInfo>"))
        .collect();
    format!(
        "<u:serviceList xmlns:u=\"NS\" truncated=\"{truncated}\">{count}<u:serviceInfos>{infos}</u:serviceInfos></u:serviceList>"
    )
}

fn count(actual: usize) -> String {
    format!(
        "<u:listDescription><u:includeCount>2</u:includeCount><u:actualCount>{actual}</u:actualCount><u:listHead>1</u:listHead></u:listDescription>"
    )
}

#[test]
fn a_page_says_what_follows_it() {
    let found = |version, message: &str, from| {
        let page: ListPage =
            reply::services_found(envelope(version, message).as_bytes(), version, from).unwrap();
        (page.keys.len(), page.rest)
    };
    let third = |message: String, from| found(Version::V3, &message, from);
    // The registry's count decides, not its `truncated`.
    assert_eq!(
        third(list(&count(5), &["a", "b"], false), 1),
        (2, Rest::From(3))
    );
    assert_eq!(
        third(list(&count(5), &["c", "d"], true), 3),
        (2, Rest::From(5))
    );
    assert_eq!(third(list(&count(5), &["e"], false), 5), (1, Rest::None));
    assert_eq!(
        third(list(&count(2), &["a", "b"], false), 1),
        (2, Rest::None)
    );
    // Requesting more would return nothing.
    assert_eq!(third(list(&count(5), &[], false), 3), (0, Rest::Cut));
    assert_eq!(third(list("", &["a"], true), 1), (1, Rest::Cut));
    assert_eq!(third(list("", &["a"], false), 1), (1, Rest::None));
    let second = |truncated| found(Version::V2, &list("", &["a", "b"], truncated), 1);
    assert_eq!(second(true), (2, Rest::Cut));
    assert_eq!(second(false), (2, Rest::None));
    let none = "<serviceList xmlns=\"NS\" generic=\"2.0\" truncated=\"false\"/>";
    assert_eq!(found(Version::V2, none, 1), (0, Rest::None));
}

#[test]
fn services_are_read_with_endpoints_and_other_data_skipped() {
    let message = "<u:serviceDetail xmlns:u=\"NS\" xmlns:d=\"urn:d\"><u:businessService serviceKey=\" k \" businessKey=\"b\">
        <u:name xml:lang=\"en\">Books</u:name><u:name xml:lang=\"de\">B\u{fc}cher</u:name><u:description>d</u:description>
        <u:bindingTemplates>
          <u:bindingTemplate bindingKey=\"one\"><u:description/><u:accessPoint USE>http://a/?x=1&amp;y=2</u:accessPoint>
            <u:tModelInstanceDetails><u:tModelInstanceInfo tModelKey=\"t\"><u:instanceDetails><u:overviewDoc>
              <u:description>d</u:description><u:overviewURL useType=\"text\">http://a/offers</u:overviewURL>
              <u:overviewURL>http://a/more</u:overviewURL></u:overviewDoc><u:instanceParms>p</u:instanceParms>
              </u:instanceDetails></u:tModelInstanceInfo><u:tModelInstanceInfo tModelKey=\"s\"/></u:tModelInstanceDetails>
            <d:accessPoint>http://other/</d:accessPoint></u:bindingTemplate>
        </u:bindingTemplates><d:Signature><d:name>no</d:name></d:Signature></u:businessService></u:serviceDetail>";
    let service = |endpoint: Option<&str>| BusinessService {
        key: "k".to_owned(),
        business: "b".to_owned(),
        name: "Books".to_owned(),
        bindings: vec![BindingTemplate {
            key: "one".to_owned(),
            endpoint: endpoint.map(str::to_owned),
            interfaces: vec![
                Interface {
                    tmodel: "t".to_owned(),
                    overview: Some("http://a/offers".to_owned()),
                },
                Interface {
                    tmodel: "s".to_owned(),
                    overview: None,
                },
            ],
        }],
    };
    let here = Some("http://a/?x=1&y=2");
    for (version, usage, endpoint) in [
        (Version::V3, "useType=\"endPoint\"", here),
        (Version::V3, "", here),
        (Version::V2, "URLType=\"http\"", here),
        (Version::V3, "useType=\"wsdlDeployment\"", None),
        (Version::V3, "useType=\"hostingRedirector\"", None),
        (Version::V3, "useType=\"bindingTemplate\"", None),
    ] {
        let text = envelope(version, &message.replace("USE", usage));
        assert_eq!(
            reply::services(text.as_bytes(), version),
            Ok(vec![service(endpoint)]),
            "{usage}"
        );
    }
}

#[test]
fn a_type_that_was_deleted_is_none() {
    let message = "<tModelDetail xmlns=\"NS\"><tModel tModelKey=\"gone\" deleted=\"true\"><name>g</name></tModel>
        <tModel tModelKey=\"here\" deleted=\"false\"><name>h</name></tModel></tModelDetail>";
    let tmodels = reply::tmodels(envelope(Version::V3, message).as_bytes(), Version::V3).unwrap();
    let keys: Vec<&str> = tmodels.iter().map(|tmodel| tmodel.key.as_str()).collect();
    assert_eq!(keys, ["here"]);
}

#[test]
fn a_fault_is_told_by_its_rule_and_its_words() {
    let fault = |detail: &str| {
        let message = format!(
            "<s:Fault><faultcode>s:Server</faultcode><faultstring>there is no k</faultstring>{detail}</s:Fault>"
        );
        reply::services(envelope(Version::V3, &message).as_bytes(), Version::V3).unwrap_err()
    };
    let report = |code: &str| {
        fault(&format!(
            "<detail><dispositionReport xmlns=\"NS\"><result errno=\"1\"><errInfo errCode=\"{code}\">a rule</errInfo></result></dispositionReport></detail>"
        ))
    };
    let unknown = report("E_invalidKeyPassed");
    assert_eq!(
        unknown.to_string(),
        "the registry refuses: there is no k (E_invalidKeyPassed)"
    );
    assert!(unknown.is_unknown_key());
    assert!(!report("E_authTokenExpired").is_unknown_key());
    assert_eq!(fault(""), ReplyError::Fault("there is no k".to_owned()));
}

#[test]
fn a_token_is_read_and_an_empty_one_is_none() {
    let token = |inner: &str| {
        let message =
            format!("<u:authToken xmlns:u=\"NS\"><u:authInfo>{inner}</u:authInfo></u:authToken>");
        reply::auth_token(envelope(Version::V2, &message).as_bytes(), Version::V2)
    };
    assert_eq!(token("authtoken:1"), Ok("authtoken:1".to_owned()));
    assert!(token("").is_err());
}

#[test]
fn a_publisher_is_told_what_is_registered_with_keys_and_names() {
    let message = "<u:registeredInfo xmlns:u=\"NS\" generic=\"2.0\"><u:businessInfos>
        <u:businessInfo businessKey=\"a\"><u:name>Ada</u:name><u:name>Countess</u:name><u:serviceInfos>
            <u:serviceInfo serviceKey=\"s\"><u:name>Books</u:name></u:serviceInfo></u:serviceInfos></u:businessInfo>
        <u:businessInfo businessKey=\"e\"><u:name>Empty</u:name></u:businessInfo>
    </u:businessInfos><u:tModelInfos><u:tModelInfo tModelKey=\"t\"><u:name>Inventory</u:name></u:tModelInfo></u:tModelInfos></u:registeredInfo>";
    for version in [Version::V2, Version::V3] {
        let registered = reply::registered(envelope(version, message).as_bytes(), version).unwrap();
        let businesses = registered.businesses.iter();
        let businesses: Vec<_> = businesses.map(|own| (&*own.key, &*own.name)).collect();
        assert_eq!(businesses, [("a", "Ada"), ("e", "Empty")]);
        assert_eq!(
            (&*registered.tmodels[0].key, &*registered.tmodels[0].name),
            ("t", "Inventory")
        );
    }
}

#[test]
fn a_business_has_services() {
    let message = "<u:businessDetail xmlns:u=\"NS\"><u:businessEntity businessKey=\"a\"><u:name>Ada</u:name><u:businessServices>
        <u:businessService serviceKey=\"s\" businessKey=\"other\"><u:name>Shared</u:name></u:businessService>
        <u:businessService serviceKey=\"b\" businessKey=\"a\"><u:name>Books</u:name><u:bindingTemplates>
            <u:bindingTemplate><u:accessPoint>http://a</u:accessPoint></u:bindingTemplate></u:bindingTemplates></u:businessService>
    </u:businessServices></u:businessEntity></u:businessDetail>";
    for version in [Version::V2, Version::V3] {
        let services = reply::services_of(envelope(version, message).as_bytes(), version).unwrap();
        let names: Vec<_> = services
            .iter()
            .map(|own| (&*own.key, &*own.business, &*own.name, own.bindings.len()))
            .collect();
        assert_eq!(names, [("s", "other", "Shared", 0), ("b", "a", "Books", 1)]);
    }
}
