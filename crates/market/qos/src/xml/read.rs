//! Reader for documents: strict, with elements in any order, in either namespace or in none.

use jiff::Timestamp;
use posthaste_soap::Limits;
use posthaste_soap::xml::{Scanner, Token, decode};
use posthaste_units::{Rate, Ratio};

use super::children::Element;
use super::{DocumentError, NAMESPACES};
use crate::bounds;
use crate::definition::{
    Contract, Custom, Definition, Info, MILLISECONDS, Number, Party, Priorities, Priority,
    Protocols, Requires, Server, Term, span_of_milliseconds,
};
use crate::document::{Document, Offer, Offers, Requirement};
use crate::money::Money;
use crate::ontology::{Direction, Metric, Ontology};

type Read<T> = Result<T, DocumentError>;

/// Reads a whole document.
pub(crate) fn read_bytes(bytes: &[u8]) -> Read<Document> {
    let limits = Limits {
        total: bounds::BYTES,
        instructions: true,
        ..Limits::default()
    };
    let text = decode(bytes, &limits)?;
    let mut scanner = Scanner::new(&text, &limits);
    match scanner.token()? {
        Token::Start(name) if is_root(&name.namespace, name.local) => {}
        Token::Start(name) => return Err(DocumentError::NotWsQos(name.local.to_owned())),
        _ => return Err(DocumentError::NotWsQos(String::new())),
    }
    let document = read(&mut scanner)?;
    scanner.token()?;
    Ok(document)
}

fn is_root(namespace: &str, local: &str) -> bool {
    local == "wsqos" && (namespace.is_empty() || NAMESPACES.contains(&namespace))
}

/// Reads the element `wsqos`, which `scanner` has started last.
pub(crate) fn read(scanner: &mut Scanner<'_>) -> Read<Document> {
    let root = Element::new(scanner, "wsqos");
    let nothing = root.missing("definition with ontology, requirements or offers");
    let mut document = None;
    root.children(&["definition"], |element, _| {
        element.children(&["ontology", "requirements", "offers"], |element, name| {
            let second = element.twice("the content of definition");
            let found = match name {
                "ontology" => Document::Ontology(ontology(element)?),
                "requirements" => Document::Requirement(requirement(element)?),
                _ => Document::Offers(offers(element)?),
            };
            set(&mut document, found, second)
        })
    })?;
    document.ok_or(nothing)
}

/// Sets a value that may occur once.
fn set<T>(field: &mut Option<T>, value: T, second: DocumentError) -> Read<()> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(second),
    }
}

fn offers(element: Element<'_, '_>) -> Read<Offers> {
    let mut offers = Offers::default();
    element.children(&["include", "qosOffer"], |element, name| {
        if name == "include" {
            offers.includes.push(element.needed("url")?);
            return element.end();
        }
        let name = element.needed("name")?;
        if offers.offers.iter().any(|other| other.name == name) {
            return Err(element.twice(&format!("the offer {name:?}")));
        }
        let written = element.needed("expires")?;
        let wanted = "a date, a time and a zone, as 2026-01-31T12:00:00Z";
        let expires = written.parse::<Timestamp>();
        let expires = expires.map_err(|_| element.wrong("expires", &written, wanted))?;
        let endpoint = element.attribute("endpoint");
        let endpoint = endpoint.filter(|endpoint| !endpoint.is_empty());
        let no_price = element.missing("price");
        let qos = definition(element)?;
        if qos.price.is_none() {
            return Err(no_price);
        }
        offers.offers.push(Offer {
            name,
            expires,
            endpoint,
            qos,
        });
        Ok(())
    })?;
    Ok(offers)
}

fn requirement(element: Element<'_, '_>) -> Read<Requirement> {
    let name = element.attribute("name").unwrap_or_default();
    let qos = definition(element)?;
    Ok(Requirement { name, qos })
}

fn definition(element: Element<'_, '_>) -> Read<Definition> {
    let mut definition = Definition::default();
    let mut default = None;
    const KNOWN: [&str; 4] = [
        "defaultQoSInfo",
        "operationQoSInfo",
        "contractAndMonitoring",
        "price",
    ];
    element.children(&KNOWN, |element, name| {
        let second = element.twice(name);
        match name {
            "defaultQoSInfo" => set(&mut default, info(element)?, second),
            "operationQoSInfo" => {
                let operation = element.needed("name")?;
                let second = element.twice(&format!("the operation {operation:?}"));
                match definition.operations.insert(operation, info(element)?) {
                    None => Ok(()),
                    Some(_) => Err(second),
                }
            }
            "contractAndMonitoring" => {
                definition.contracts.push(contract(element)?);
                Ok(())
            }
            _ => set(&mut definition.price, price(element)?, second),
        }
    })?;
    definition.default = default.unwrap_or_default();
    Ok(definition)
}

fn price(element: Element<'_, '_>) -> Read<Money> {
    let written = element.needed("currency")?;
    let currency = written.parse();
    let currency = currency
        .map_err(|_| element.wrong("currency", &written, "three capital letters, such as EUR"))?;
    let wanted = "a decimal number, not negative, with at most six decimals";
    element
        .text()?
        .read(wanted, |text| Money::new(text, currency).ok())
}

fn info(element: Element<'_, '_>) -> Read<Info> {
    let mut info = Info::default();
    let (mut server, mut transport) = (None, None);
    const KNOWN: [&str; 3] = [
        "serverQoSMetrics",
        "transportQoSPriorities",
        "securityAndTransaction",
    ];
    element.children(&KNOWN, |element, name| {
        let second = element.twice(name);
        match name {
            "serverQoSMetrics" => set(&mut server, self::server(element)?, second),
            "transportQoSPriorities" => set(&mut transport, priorities(element)?, second),
            _ => {
                info.security.push(protocols(element)?);
                Ok(())
            }
        }
    })?;
    info.server = server.unwrap_or_default();
    info.transport = transport.unwrap_or_default();
    Ok(info)
}

fn server(element: Element<'_, '_>) -> Read<Server> {
    let mut server = Server::default();
    const KNOWN: [&str; 5] = [
        "processingTime",
        "requestsPerSecond",
        "reliability",
        "availability",
        "customMetric",
    ];
    element.children(&KNOWN, |element, name| {
        let second = element.twice(name);
        match name {
            "processingTime" => {
                let read = element
                    .text()?
                    .read(MILLISECONDS, |text| span_of_milliseconds(number(text)?));
                set(&mut server.processing_time, read?, second)
            }
            "requestsPerSecond" => {
                let wanted = "a number, not negative";
                let read = element
                    .text()?
                    .read(wanted, |text| Rate::per_second(number(text)?));
                set(&mut server.requests_per_second, read?, second)
            }
            "reliability" => set(&mut server.reliability, share(element)?, second),
            "availability" => set(&mut server.availability, share(element)?, second),
            _ => custom(element, &mut server.custom, "a finite number", |text| {
                Number::new(number(text)?)
            }),
        }
    })?;
    Ok(server)
}

fn share(element: Element<'_, '_>) -> Read<Ratio> {
    element
        .text()?
        .read("a share from 0 to 1", |text| Ratio::new(number(text)?))
}

fn priorities(element: Element<'_, '_>) -> Read<Priorities> {
    let mut priorities = Priorities::default();
    const WANTED: &str = "a whole number from 0 to 10";
    let priority = |text: &str| Priority::new(text.parse().ok()?);
    const KNOWN: [&str; 5] = [
        "delay",
        "jitter",
        "throughput",
        "packetLoss",
        "customPriority",
    ];
    element.children(&KNOWN, |element, name| {
        let field = match name {
            "delay" => &mut priorities.delay,
            "jitter" => &mut priorities.jitter,
            "throughput" => &mut priorities.throughput,
            "packetLoss" => &mut priorities.packet_loss,
            _ => return custom(element, &mut priorities.custom, WANTED, priority),
        };
        let second = element.twice(name);
        set(field, element.text()?.read(WANTED, priority)?, second)
    })?;
    Ok(priorities)
}

fn custom<T>(
    element: Element<'_, '_>,
    customs: &mut Vec<Custom<T>>,
    wanted: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Read<()> {
    let (name, ontology) = (element.needed("name")?, element.needed("ontology")?);
    let second = element.twice(&format!("{} {name:?}", element.name()));
    let value = element.text()?.read(wanted, read)?;
    let custom = Custom {
        name,
        ontology,
        value,
    };
    if customs.iter().any(|other| other.is_of(&custom)) {
        return Err(second);
    }
    customs.push(custom);
    Ok(())
}

fn protocols(element: Element<'_, '_>) -> Read<Protocols> {
    let requires = requires(&element)?;
    let mut protocols = Vec::new();
    element.children(&["protocol"], |element, _| {
        protocols.push(term(&element)?);
        element.end()
    })?;
    Ok(Protocols {
        protocols,
        requires,
    })
}

fn contract(element: Element<'_, '_>) -> Read<Contract> {
    let mut contract = Contract {
        requires: requires(&element)?,
        ..Contract::default()
    };
    element.children(&["protocol", "trustedParty"], |element, name| {
        match name {
            "protocol" => contract.protocols.push(term(&element)?),
            _ => contract.parties.push(Party {
                name: element.attribute("name").unwrap_or_default(),
                url: element.needed("url")?,
            }),
        }
        element.end()
    })?;
    Ok(contract)
}

fn requires(element: &Element<'_, '_>) -> Read<Requires> {
    let Some(written) = element.attribute("requires") else {
        return Ok(Requires::None);
    };
    [Requires::None, Requires::One, Requires::All]
        .into_iter()
        .find(|requires| requires.word() == written)
        .ok_or_else(|| element.wrong("requires", &written, "none, one or all"))
}

fn term(element: &Element<'_, '_>) -> Read<Term> {
    Ok(Term {
        name: element.needed("name")?,
        ontology: element.needed("ontology")?,
    })
}

fn ontology(element: Element<'_, '_>) -> Read<Ontology> {
    let mut ontology = Ontology::default();
    const KNOWN: [&str; 3] = [
        "metricDefinition",
        "priorityDefinition",
        "protocolDefinition",
    ];
    element.children(&KNOWN, |element, kind| {
        let name = element.needed("name")?;
        let second = element.twice(&format!("{kind} {name:?}"));
        let is_new = match kind {
            "metricDefinition" => {
                let metric = metric(&element)?;
                ontology.metrics.insert(name, metric).is_none()
            }
            "priorityDefinition" => ontology.priorities.insert(name),
            _ => ontology.protocols.insert(name),
        };
        if !is_new {
            return Err(second);
        }
        element.end()
    })?;
    Ok(ontology)
}

fn metric(element: &Element<'_, '_>) -> Read<Metric> {
    let written = element.needed("direction")?;
    let direction = match written.as_str() {
        "inc" => Direction::Increasing,
        "dec" => Direction::Decreasing,
        _ => return Err(element.wrong("direction", &written, "inc or dec")),
    };
    let percentile = element.attribute("percentile");
    let percentile = percentile.map(|written| {
        let read = number(&written).filter(|value| (0.0..=100.0).contains(value));
        read.ok_or_else(|| element.wrong("percentile", &written, "a number from 0 to 100"))
    });
    Ok(Metric {
        direction,
        unit: element.attribute("unit").unwrap_or_default(),
        percentile: percentile.transpose()?,
    })
}

/// Reads a decimal number as in XML Schema. Words that Rust would read as numbers are invalid.
fn number(text: &str) -> Option<f64> {
    let is_number = |b: u8| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E');
    text.bytes().all(is_number).then(|| text.parse().ok())?
}
