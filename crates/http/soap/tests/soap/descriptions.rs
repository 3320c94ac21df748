//! Descriptions: round trips of ours, and examples from four toolkits.

use posthaste_soap::wsdl::{
    self, Element, EnvelopeError, Extension, Input, Kind, Offered, ReadError, Record, Service,
};
use posthaste_soap::xml::XmlError;
use posthaste_soap::{Limit, Limits, Request, Version};

const CXF: &str = include_str!("../samples/cxf.wsdl");
const DOTNET: &str = include_str!("../samples/dotnet.wsdl");
const SPYNE: &str = include_str!("../samples/spyne.wsdl");
const GSOAP: &str = include_str!("../samples/gsoap.wsdl");

fn ours() -> Service {
    Service {
        name: "Shop",
        namespace: "urn:shop",
        documentation: "Words with <marks> & more.",
        operations: vec![Offered {
            name: "Find",
            documentation: "Finds.",
            input: vec![
                Element::simple("isbn", "string", "The number."),
                Element {
                    optional: true,
                    many: true,
                    ..Element::simple("tag", "int", "")
                },
            ],
            output: vec![Element {
                name: "Book",
                kind: Kind::Record("Book"),
                optional: false,
                many: true,
                documentation: "",
            }],
            extensions: vec![Extension {
                namespace: "urn:other&more".to_owned(),
                name: "hint".to_owned(),
                text: "a < b".to_owned(),
            }],
        }],
        records: vec![
            Record {
                name: "Book",
                documentation: "",
                elements: vec![Element::simple("title", "string", "")],
            },
            Record {
                name: "Oops",
                documentation: "",
                elements: vec![Element::simple("why", "string", "")],
            },
        ],
        fault: Some("Oops"),
    }
}

#[test]
fn our_descriptions_can_be_called() {
    let document = ours().wsdl("http://host:1/soap?a=1&b=2");
    let description = wsdl::read(document.as_bytes()).unwrap();
    for version in [Version::Soap11, Version::Soap12] {
        let (port, operation) = description.find("Find", Some(version)).unwrap();
        assert_eq!(port.address, "http://host:1/soap?a=1&b=2");
        assert_eq!(
            (&*operation.action, &*operation.documentation),
            ("urn:shop/Find", "Finds.")
        );
        assert_eq!(operation.fields(), ["isbn", "tag"]);
        assert_eq!(operation.extensions, ours().operations[0].extensions);
        let text = operation
            .envelope(version, &[("tag", "1"), ("isbn", "<&>"), ("tag", "2")])
            .unwrap();
        let request = Request::read(&text, version, &Limits::default(), &[]).unwrap();
        assert!(request.operation.is("urn:shop", "Find"));
        let fields: Vec<_> = request
            .fields
            .iter()
            .map(|f| (f.name.local, f.text.as_deref().unwrap()))
            .collect();
        assert_eq!(fields, [("isbn", "<&>"), ("tag", "1"), ("tag", "2")]);
        assert!(
            request
                .fields
                .iter()
                .all(|f| f.name.namespace == "urn:shop")
        );
    }
}

#[test]
fn our_descriptions_obey_the_profile() {
    insta::assert_snapshot!(ours().wsdl("http://host:1/soap"));
}

#[test]
fn cxf_unqualified_fields_named_types_and_extensions() {
    let description = wsdl::read(CXF.as_bytes()).unwrap();
    let (port, lend) = description.find("lend", None).unwrap();
    assert_eq!(
        (&*port.address, port.version),
        ("http://localhost:9000/library", Version::Soap11)
    );
    assert_eq!(lend.fields(), ["desk", "isbn", "days", "note", "reader"]);
    let text = lend
        .envelope(
            Version::Soap11,
            &[("isbn", "1"), ("desk", "2"), ("note", "a")],
        )
        .unwrap();
    assert!(text.contains(
        "<m:lend xmlns:m=\"http://shop.example/\"><desk>2</desk><isbn>1</isbn><note>a</note></m:lend>"
    ), "{text}");
    let structured = lend.envelope(
        Version::Soap11,
        &[("isbn", "1"), ("desk", "2"), ("reader", "x")],
    );
    assert!(
        matches!(structured, Err(EnvelopeError::Structured { field, .. }) if field == "reader")
    );
    let twice = lend.envelope(
        Version::Soap11,
        &[("isbn", "1"), ("desk", "2"), ("isbn", "3")],
    );
    assert!(matches!(twice, Err(EnvelopeError::Twice { .. })));
}

#[test]
fn dotnet_default_prefix_two_schemas_nil_and_other_bindings() {
    let description = wsdl::read(DOTNET.as_bytes()).unwrap();
    assert_eq!(
        description.services[0].ports.len(),
        2,
        "HTTP GET is none of ours"
    );
    let (port, convert) = description.find("Convert", None).unwrap();
    assert_eq!(port.address, "http://rates.example/rates.asmx?a=1&b=2");
    assert_eq!(
        (&*convert.action, &*convert.documentation),
        ("http://tempuri.org/Convert", "Converts an amount.")
    );
    let text = convert
        .envelope(Version::Soap12, &[("Amount", "1.5"), ("Kind", "spot")])
        .unwrap();
    let wanted = "<m:Convert xmlns:m=\"http://tempuri.org/\"><m:Amount>1.5</m:Amount>\
        <m:At xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:nil=\"true\"/>\
        <f:Kind xmlns:f=\"http://tempuri.org/kinds\">spot</f:Kind></m:Convert>";
    assert!(text.contains(wanted), "{text}");
    let (_, ping) = description.find("Ping", None).unwrap();
    assert!(
        ping.envelope(Version::Soap11, &[])
            .unwrap()
            .contains("<m:Ping xmlns:m=\"http://tempuri.org/\"></m:Ping>")
    );
    let gone = description.find("Ping", Some(Version::Soap12)).unwrap_err();
    assert_eq!(gone.known, ["Convert"]);
}

#[test]
fn spyne_service_before_binding_and_types_of_another_schema() {
    let description = wsdl::read(SPYNE.as_bytes()).unwrap();
    let (_, say) = description.find("say", None).unwrap();
    let Input::Wrapper(wrapper) = &say.input else {
        panic!("{:?}", say.input)
    };
    let kinds: Vec<_> = wrapper.fields.iter().map(|f| f.kind.as_deref()).collect();
    assert_eq!(kinds, [Some("string"), Some("Mood"), Some("integer")]);
    let missing = say
        .envelope(Version::Soap11, &[("name", "x")])
        .unwrap_err()
        .to_string();
    assert!(
        missing.contains("\"times\"") && missing.contains("name, mood, times"),
        "{missing}"
    );
    let unknown = say
        .envelope(Version::Soap11, &[("nme", "x")])
        .unwrap_err()
        .to_string();
    assert!(
        unknown.contains("\"nme\"") && unknown.contains("name, mood, times"),
        "{unknown}"
    );
}

#[test]
fn gsoap_default_namespaces_and_an_rpc_operation_named_as_such() {
    let description = wsdl::read(GSOAP.as_bytes()).unwrap();
    let (_, add) = description.find("add", None).unwrap();
    let text = add
        .envelope(Version::Soap11, &[("a", "1"), ("b", "2")])
        .unwrap();
    assert!(
        text.contains("<m:add xmlns:m=\"urn:calc\"><a>1</a><b>2</b></m:add>"),
        "{text}"
    );
    let (_, old) = description.find("old", None).unwrap();
    let refused = old.envelope(Version::Soap11, &[]).unwrap_err().to_string();
    assert!(refused.contains("rpc"), "{refused}");
}

/// Style sheets, for example: R1009 is about messages only.
#[test]
fn instructions_are_passed_over() {
    let plain = one("urn:t", "E", "f");
    let sheet = "<?xml-stylesheet type='text/xsl' href='a.xsl'?>";
    let first = plain.find("<w:message").unwrap();
    let inside = format!("{}<?keep a < b & c?>{}", &plain[..first], &plain[first..]);
    for document in [
        format!("<?xml version='1.0'?>{sheet}{plain}"),
        format!("{sheet}{plain}{sheet}<?x?>"),
        inside,
    ] {
        assert_eq!(
            wsdl::read(document.as_bytes()),
            wsdl::read(plain.as_bytes()),
            "{document}"
        );
    }
    for wrong in [
        "<?xml?>",
        "<?XML a?>",
        "<? x?>",
        "<??>",
        "<?1?>",
        "<?x",
        "<?xml a='1'?>",
    ] {
        let document = format!("{plain}{wrong}");
        assert!(
            matches!(
                wsdl::read(document.as_bytes()),
                Err(ReadError::Xml(XmlError::Malformed { .. }))
            ),
            "{wrong} was accepted"
        );
    }
}

#[test]
fn description_errors_state_the_reason_and_the_remedy() {
    let modern = wsdl::read(b"<description xmlns='http://www.w3.org/ns/wsdl'/>").unwrap_err();
    assert_eq!(modern, ReadError::Wsdl20);
    assert!(modern.to_string().contains("WSDL 1.1"));
    assert!(matches!(wsdl::read(b"<html/>"), Err(ReadError::NotWsdl(name)) if name == "html"));
    assert!(matches!(
        wsdl::read(b"<definitions xmlns='http://schemas.xmlsoap.org/wsdl/'/>"),
        Err(ReadError::NoPort(_))
    ));
    let split = "<definitions xmlns='http://schemas.xmlsoap.org/wsdl/' xmlns:t='urn:t' xmlns:s='http://schemas.xmlsoap.org/wsdl/soap/'>\
        <import namespace='urn:t' location='http://h/b.wsdl'/>\
        <service name='x'><port name='p' binding='t:b'><s:address location='http://h/'/></port></service></definitions>";
    let missing = wsdl::read(split.as_bytes()).unwrap_err().to_string();
    assert!(
        missing.contains("{urn:t}b")
            && missing.contains("http://h/b.wsdl")
            && missing.contains("singleWsdl"),
        "{missing}"
    );
}

#[test]
fn a_schema_that_stands_elsewhere_is_named_when_it_is_needed() {
    let start = CXF.find("<xs:element name=\"lend\"").unwrap();
    let end = CXF.find("</xs:schema>").unwrap();
    let document = format!(
        "{}<xs:include schemaLocation=\"library.xsd\"/>{}",
        &CXF[..start],
        &CXF[end..]
    );
    let description = wsdl::read(document.as_bytes()).unwrap();
    let (_, lend) = description.find("lend", None).unwrap();
    let error = lend.envelope(Version::Soap11, &[]).unwrap_err().to_string();
    assert!(
        error.contains("library.xsd") && error.contains("{http://shop.example/}lend"),
        "{error}"
    );
}

#[test]
fn a_type_that_extends_itself_ends() {
    let document = CXF.replace("base=\"tns:request\"", "base=\"tns:lend\"");
    let description = wsdl::read(document.as_bytes()).unwrap();
    let (_, lend) = description.find("lend", None).unwrap();
    assert!(matches!(&lend.input, Input::Unusable(reason) if reason.contains("extends itself")));
}

/// One operation with a request of the element `name` in `namespace`, with the field `field`.
fn one(namespace: &str, name: &str, field: &str) -> String {
    let target = format!("targetNamespace='{namespace}'");
    let prefix = if namespace.is_empty() { "" } else { "t:" };
    let declared = match namespace {
        "" => String::new(),
        namespace => format!("xmlns:t='{namespace}'"),
    };
    format!(
        "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' xmlns:s='http://schemas.xmlsoap.org/wsdl/soap/' \
         xmlns:x='http://www.w3.org/2001/XMLSchema' {declared} {target}>\
         <w:types><x:schema {target}><x:element name='{name}'><x:complexType><x:sequence>\
         <x:element name='{field}' type='x:string'/><x:element ref='bare' minOccurs='0'/>\
         </x:sequence></x:complexType></x:element></x:schema></w:types>\
         <w:message name='M'><w:part name='p' element='{prefix}{name}'/></w:message>\
         <w:portType name='T'><w:operation name='O'><w:input message='{prefix}M'/></w:operation></w:portType>\
         <w:binding name='B' type='{prefix}T'><s:binding/><w:operation name='O'/></w:binding>\
         <w:service name='S'><w:port name='P' binding='{prefix}B'><s:address location='u'/></w:port></w:service>\
         </w:definitions>"
    )
}

#[test]
fn names_that_no_element_can_have_are_never_written() {
    let reason = |document: &str| {
        let description = wsdl::read(document.as_bytes()).unwrap();
        let (_, operation) = description.find("O", None).unwrap();
        match &operation.input {
            Input::Unusable(reason) => reason.clone(),
            input => {
                let text = operation.envelope(Version::Soap11, &[("f", "1")]);
                panic!("{input:?} made {text:?}")
            }
        }
    };
    for (name, field) in [
        ("E&gt;&lt;x", "f"),
        ("E", "f b=&quot;1&quot;"),
        ("E", "p:q"),
        ("E", ""),
        ("E", "1"),
    ] {
        let why = reason(&one("urn:t", name, field));
        assert!(why.contains("not a name"), "{name} {field}: {why}");
    }
    let why = reason(&one("", "E", "f"));
    assert!(why.contains("R1014"), "{why}");
    let good = wsdl::read(one("urn:t", "E", "f").as_bytes()).unwrap();
    let (_, operation) = good.find("O", None).unwrap();
    assert!(operation.envelope(Version::Soap11, &[("f", "1")]).is_ok());
    let Input::Wrapper(wrapper) = &operation.input else {
        panic!("{:?}", operation.input)
    };
    assert_eq!(
        wrapper.fields[1].namespace, None,
        "a reference to no namespace"
    );
}

#[test]
fn descriptions_with_excessive_repetition_are_refused() {
    let long = one(&"n".repeat(1025), "E", "f");
    assert!(matches!(
        wsdl::read(long.as_bytes()),
        Err(ReadError::Xml(XmlError::Limit {
            limit: Limit::Name,
            ..
        }))
    ));
    // Ports times operations times fields: a third of a megabyte that would need gigabytes.
    let times = |part: &str, n: usize| part.repeat(n);
    let document = one("urn:t", "E", "f")
        .replace(
            "<x:element name='f'",
            &(times("<x:element name='g'/>", 3000) + "<x:element name='f'"),
        )
        .replace(
            "<w:operation name='O'/>",
            &times("<w:operation name='O'/>", 1000),
        )
        .replace(
            "<w:operation name='O'><w:input message='t:M'/></w:operation>",
            &times(
                "<w:operation name='O'><w:input message='t:M'/></w:operation>",
                1000,
            ),
        );
    assert_eq!(wsdl::read(document.as_bytes()), Err(ReadError::TooMuch));
}
