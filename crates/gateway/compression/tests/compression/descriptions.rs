//! Preferences in descriptions: at a binding, at an operation, misspelt, and in conflict.

use posthaste_compression::{Described, Wish};
use posthaste_soap::wsdl;

/// A service with the operations `A` and `B`, with this content in its binding and in the binding of each.
fn described(binding: &str, a: &str, b: &str, actions: [&str; 2]) -> Described {
    let [first, second] = actions;
    let document = format!(
        "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' xmlns:s='http://schemas.xmlsoap.org/wsdl/soap/' \
         xmlns:t='urn:t' targetNamespace='urn:t' xmlns:p='urn:posthaste:wsqos'>\
         <w:message name='M'/>\
         <w:portType name='P'><w:operation name='A'><w:input message='t:M'/></w:operation>\
         <w:operation name='B'><w:input message='t:M'/></w:operation></w:portType>\
         <w:binding name='B' type='t:P'><s:binding transport='http://schemas.xmlsoap.org/soap/http'/>{binding}\
         <w:operation name='A'><s:operation soapAction='{first}'/>{a}<w:input/></w:operation>\
         <w:operation name='B'><s:operation soapAction='{second}'/>{b}<w:input/></w:operation></w:binding>\
         <w:service name='S'><w:port name='P' binding='t:B'><s:address location='http://h/'/></w:port></w:service>\
         </w:definitions>"
    );
    Described::from_description(&wsdl::read(document.as_bytes()).unwrap())
}

const ALWAYS: &str = "<p:compression>always</p:compression>";
const NEVER: &str = "<p:compression> never </p:compression>";

#[test]
fn an_operation_counts_before_its_binding() {
    let found = described(ALWAYS, "", NEVER, ["urn:a", "urn:b"]);
    assert_eq!(found.wish("urn:a"), Some(Wish::Always));
    assert_eq!(found.wish("urn:b"), Some(Wish::Never));
    assert_eq!(found.wish("urn:c"), None);
    assert_eq!(
        described("", "", "", ["urn:a", "urn:b"]).wish("urn:a"),
        None
    );
}

#[test]
fn another_word_states_nothing_and_is_counted() {
    let odd = "<p:compression>yes</p:compression>";
    let foreign = "<q:compression xmlns:q='urn:q'>always</q:compression><p:other>always</p:other>";
    let found = described(
        foreign,
        odd,
        "<p:compression><x/></p:compression>",
        ["urn:a", "urn:b"],
    );
    assert_eq!((found.wish("urn:a"), found.wish("urn:b")), (None, None));
    assert_eq!(found.unknown(), 1);
}

#[test]
fn operations_that_share_an_action_must_agree() {
    assert_eq!(
        described(NEVER, "", "", ["", ""]).wish(""),
        Some(Wish::Never)
    );
    assert_eq!(described(NEVER, "", ALWAYS, ["", ""]).wish(""), None);
    assert_eq!(described("", ALWAYS, "", ["", ""]).wish(""), None);
}
