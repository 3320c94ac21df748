//! Writer for documents, in the form of the schema's authors: the root is qualified, its children are not.

use std::fmt::Write as _;

use posthaste_soap::write::{attribute, text};

use super::NAMESPACES;
use crate::definition::{
    Contract, Custom, Definition, Info, Priorities, Protocols, Requires, Server, Term,
};
use crate::document::{Document, Requirement};
use crate::ontology::{Direction, Ontology};

/// An XML document under construction.
struct XmlWriter<'o>(&'o mut String);

/// Appends the root element. It declares that its children are in no namespace, so any element may contain it.
pub(crate) fn write(document: &Document, out: &mut String) {
    let mut to = XmlWriter(out);
    to.within(
        "q:wsqos",
        &[("xmlns:q", NAMESPACES[0]), ("xmlns", "")],
        |to| {
            to.within("definition", &[], |to| match document {
                Document::Ontology(ontology) => to.ontology(ontology),
                Document::Requirement(Requirement { name, qos }) => {
                    let name = Some(("name", name.as_str())).filter(|(_, name)| !name.is_empty());
                    to.within("requirements", name.as_slice(), |to| to.definition(qos));
                }
                Document::Offers(offers) => to.within("offers", &[], |to| {
                    for url in &offers.includes {
                        to.empty("include", &[("url", url)]);
                    }
                    for offer in &offers.offers {
                        let expires = offer.expires.to_string();
                        let endpoint = offer.endpoint.as_deref();
                        let attributes: Vec<_> = [("expires", &*expires), ("name", &offer.name)]
                            .into_iter()
                            .chain(endpoint.map(|url| ("endpoint", url)))
                            .collect();
                        to.within("qosOffer", &attributes, |to| to.definition(&offer.qos));
                    }
                }),
            });
        },
    );
}

impl XmlWriter<'_> {
    fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.0.push('<');
        self.0.push_str(name);
        for (name, value) in attributes {
            let _ = write!(self.0, " {name}=\"");
            attribute(value, self.0);
            self.0.push('"');
        }
    }

    fn within(&mut self, name: &str, attributes: &[(&str, &str)], inner: impl FnOnce(&mut Self)) {
        self.open(name, attributes);
        self.0.push('>');
        inner(self);
        let _ = write!(self.0, "</{name}>");
    }

    fn empty(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.open(name, attributes);
        self.0.push_str("/>");
    }

    fn value(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value {
            self.within(name, &[], |to| text(&value, to.0));
        }
    }

    fn definition(&mut self, definition: &Definition) {
        self.info("defaultQoSInfo", &[], &definition.default);
        for (name, info) in &definition.operations {
            self.info("operationQoSInfo", &[("name", name)], info);
        }
        for contract in &definition.contracts {
            self.contract(contract);
        }
        if let Some(price) = definition.price {
            let currency = price.currency().to_string();
            self.within("price", &[("currency", &currency)], |to| {
                to.0.push_str(&price.amount())
            });
        }
    }

    fn info(&mut self, name: &str, attributes: &[(&str, &str)], info: &Info) {
        if *info == Info::default() && attributes.is_empty() {
            return;
        }
        self.within(name, attributes, |to| {
            to.server(&info.server);
            to.priorities(&info.transport);
            info.security
                .iter()
                .for_each(|protocols| to.security(protocols));
        });
    }

    fn server(&mut self, server: &Server) {
        if *server == Server::default() {
            return;
        }
        self.within("serverQoSMetrics", &[], |to| {
            let milliseconds = server.processing_time.map(|span| span.as_millis_f64());
            to.value(
                "processingTime",
                milliseconds.map(|value| value.to_string()),
            );
            let rate = server.requests_per_second.map(|rate| rate.as_per_second());
            to.value("requestsPerSecond", rate.map(|value| value.to_string()));
            let share = |ratio: posthaste_units::Ratio| ratio.get().to_string();
            to.value("reliability", server.reliability.map(share));
            to.value("availability", server.availability.map(share));
            for custom in &server.custom {
                to.custom("customMetric", custom, &custom.value.get().to_string());
            }
        });
    }

    fn priorities(&mut self, priorities: &Priorities) {
        if *priorities == Priorities::default() {
            return;
        }
        self.within("transportQoSPriorities", &[], |to| {
            let named = [
                ("delay", priorities.delay),
                ("jitter", priorities.jitter),
                ("throughput", priorities.throughput),
                ("packetLoss", priorities.packet_loss),
            ];
            for (name, priority) in named {
                to.value(name, priority.map(|priority| priority.get().to_string()));
            }
            for custom in &priorities.custom {
                to.custom("customPriority", custom, &custom.value.get().to_string());
            }
        });
    }

    fn custom<T>(&mut self, element: &str, custom: &Custom<T>, value: &str) {
        let attributes = [
            ("name", custom.name.as_str()),
            ("ontology", &custom.ontology),
        ];
        self.within(element, &attributes, |to| to.0.push_str(value));
    }

    fn security(&mut self, security: &Protocols) {
        self.within(
            "securityAndTransaction",
            &requires(security.requires),
            |to| {
                security.protocols.iter().for_each(|term| to.protocol(term));
            },
        );
    }

    fn contract(&mut self, contract: &Contract) {
        self.within(
            "contractAndMonitoring",
            &requires(contract.requires),
            |to| {
                contract.protocols.iter().for_each(|term| to.protocol(term));
                for party in &contract.parties {
                    to.empty(
                        "trustedParty",
                        &[("name", &party.name), ("url", &party.url)],
                    );
                }
            },
        );
    }

    fn protocol(&mut self, term: &Term) {
        self.empty(
            "protocol",
            &[("name", &term.name), ("ontology", &term.ontology)],
        );
    }

    fn ontology(&mut self, ontology: &Ontology) {
        self.within("ontology", &[], |to| {
            for (name, metric) in &ontology.metrics {
                let direction = match metric.direction {
                    Direction::Increasing => "inc",
                    Direction::Decreasing => "dec",
                };
                let percentile = metric.percentile.map(|value| value.to_string());
                let mut attributes = vec![("name", name.as_str()), ("direction", direction)];
                if !metric.unit.is_empty() {
                    attributes.push(("unit", &metric.unit));
                }
                if let Some(percentile) = &percentile {
                    attributes.push(("percentile", percentile));
                }
                to.empty("metricDefinition", &attributes);
            }
            for name in &ontology.priorities {
                to.empty("priorityDefinition", &[("name", name)]);
            }
            for name in &ontology.protocols {
                to.empty("protocolDefinition", &[("name", name)]);
            }
        });
    }
}

fn requires(requires: Requires) -> [(&'static str, &'static str); 1] {
    [("requires", requires.word())]
}
