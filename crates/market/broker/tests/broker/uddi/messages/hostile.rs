//! Invalid replies of a registry are rejected with an explanation, within the limits.

use posthaste_broker::uddi::messages::{Version, reply};

use super::envelope;

fn refused(text: &str, expected: &str) {
    let error = reply::services(text.as_bytes(), Version::V3)
        .unwrap_err()
        .to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn invalid_replies_are_refused() {
    refused("", "no element");
    refused("<html/>", "with \"html\" of \"\", not with an envelope");
    refused("<!DOCTYPE a [<!ENTITY b 'c'>]><a/>", "DOCTYPE");
    refused(
        &envelope(
            Version::V3,
            "<serviceDetail xmlns=\"NS\">&b;</serviceDetail>",
        ),
        "&b;",
    );
    refused(
        &envelope(Version::V3, ""),
        "with nothing, not with \"serviceDetail\"",
    );
    refused(
        &envelope(Version::V3, "<serviceList xmlns=\"NS\"/>"),
        "\"serviceList\"",
    );
    // A registry of the other version.
    refused(
        &envelope(Version::V2, "<serviceDetail xmlns=\"NS\"/>"),
        "\"urn:uddi-org:api_v2\", not with",
    );
    let whole = envelope(Version::V3, "<serviceDetail xmlns=\"NS\"/>");
    refused(&whole[..whole.len() - 3], "not well-formed");
    refused(&format!("{whole}<more/>"), "second root");
    let newer = whole.replace(
        "http://schemas.xmlsoap.org/soap/envelope/",
        "http://www.w3.org/2003/05/soap-envelope",
    );
    refused(&newer, "not with an envelope of SOAP 1.1");
}

#[test]
fn a_reply_has_bounds() {
    let detail = |inner: &str| {
        envelope(
            Version::V3,
            &format!("<serviceDetail xmlns=\"NS\">{inner}</serviceDetail>"),
        )
    };
    refused(&detail(&" ".repeat(4 << 20)), "bytes in the document");
    let name = format!(
        "<businessService><name>{}</name></businessService>",
        "x".repeat(17 << 10)
    );
    refused(&detail(&name), "bytes in one text");
    refused(&detail(&"<a>".repeat(80)), "elements inside one another");
    let fault = format!(
        "<s:Fault><faultcode>s:Server</faultcode><faultstring>{}</faultstring></s:Fault>",
        "é".repeat(4_000)
    );
    let error = reply::services(envelope(Version::V3, &fault).as_bytes(), Version::V3).unwrap_err();
    assert!(error.to_string().chars().count() < 350);
}
