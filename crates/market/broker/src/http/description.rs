//! WSDL description of the SOAP interface, served at `/soap?wsdl`.

use posthaste_soap::wsdl::{Element, Kind, Offered, Record, Service};

/// Namespace of all elements in replies.
pub(super) const NAMESPACE: &str = "urn:posthaste:broker";

/// Description of the service.
pub(crate) fn service() -> Service {
    Service {
        name: "Broker",
        namespace: NAMESPACE,
        documentation: "Offers of quality of service, and the cheapest one that is enough.",
        operations: vec![
            get_best_offer(),
            available_offers_info(),
            get_trusted_providers(),
            get_registry_location(),
        ],
        records: vec![document(), offer_info()],
        fault: None,
    }
}

fn get_best_offer() -> Offered {
    operation(
        "GetBestOffer",
        "The cheapest adequate offer, or what speaks against the ten cheapest.",
        vec![
            kind(),
            Element {
                name: "requirements",
                kind: Kind::Record("Document"),
                optional: false,
                many: false,
                documentation: "Requirements in the vocabulary of WS-QoS.",
            },
        ],
        vec![
            Element {
                optional: true,
                ..Element::simple("provider", "string", "Whose offer it is.")
            },
            Element {
                optional: true,
                ..Element::simple("endpoint", "anyURI", "Where the service is called.")
            },
            Element {
                name: "offer",
                kind: Kind::Record("Document"),
                optional: true,
                many: false,
                documentation: "The offer in the vocabulary of WS-QoS.",
            },
            any_number(
                "reason",
                Kind::Simple("string"),
                "What speaks against an offer.",
            ),
        ],
    )
}

fn available_offers_info() -> Offered {
    let documentation = "The offers for a type of interface, the cheapest first.";
    let offers = any_number("Offer", Kind::Record("OfferInfo"), "");
    operation(
        "AvailableOffersInfo",
        documentation,
        vec![kind()],
        vec![offers],
    )
}

fn get_trusted_providers() -> Offered {
    let providers = any_number("provider", Kind::Simple("string"), "");
    operation(
        "GetTrustedProviders",
        "Providers whose offers are accepted: those with a token, and those that the registry names.",
        Vec::new(),
        vec![providers],
    )
}

fn get_registry_location() -> Offered {
    let documentation = "Where the registry of services is: this broker where there is no other.";
    let location = Element::simple("location", "anyURI", "");
    operation(
        "GetRegistryLocation",
        documentation,
        Vec::new(),
        vec![location],
    )
}

fn operation(
    name: &'static str,
    documentation: &'static str,
    input: Vec<Element>,
    output: Vec<Element>,
) -> Offered {
    Offered {
        name,
        documentation,
        input,
        output,
        extensions: Vec::new(),
    }
}

fn kind() -> Element {
    let documentation = "The type of interface: a UDDI tModel's key, or any other name.";
    Element::simple("tModelKey", "string", documentation)
}

fn any_number(name: &'static str, kind: Kind, documentation: &'static str) -> Element {
    Element {
        name,
        kind,
        optional: true,
        many: true,
        documentation,
    }
}

fn document() -> Record {
    let root = Element {
        name: "",
        kind: Kind::Any("http://wsqos.org/"),
        optional: false,
        many: false,
        documentation: "",
    };
    Record {
        name: "Document",
        documentation: "One element wsqos.",
        elements: vec![root],
    }
}

fn offer_info() -> Record {
    Record {
        name: "OfferInfo",
        documentation: "An offer in short.",
        elements: vec![
            Element::simple("provider", "string", "Whose it is."),
            Element::simple("name", "string", "What it is called."),
            Element::simple("price", "decimal", "What a call costs."),
            Element::simple("currency", "string", "In which currency (ISO 4217)."),
            Element::simple("expires", "dateTime", "From this moment on it is no more."),
        ],
    }
}
