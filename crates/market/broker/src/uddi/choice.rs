//! Selection of the registered services whose documents may be fetched.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_broker_client::RemoteDocument;
use posthaste_qos::bounds;

use super::messages::{BindingTemplate, BusinessService};
use crate::fetching::source::DocumentUrl;

/// Maximum number of documents per provider and type.
const DOCUMENTS: usize = 64;

/// Result for a service, in the order of [`STATES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceState {
    Taken,
    Untrusted,
    NoAddress,
    Elsewhere,
    TooMany,
    Cut,
}

/// Number of services per state.
pub(crate) type Tally = [u64; STATES.len()];

/// Names of the [`ServiceState`]s: fetched; business not trusted; no valid address; document not allowed; beyond the maximum
/// per provider; omitted by the registry or beyond the maximum per type.
pub(crate) const STATES: [&str; 6] = [
    "taken",
    "untrusted",
    "no-address",
    "elsewhere",
    "too-many",
    "cut",
];

/// Documents to fetch for one type.
pub(super) struct DocumentChoice<'c> {
    kind: &'c str,
    trusted: &'c BTreeSet<String>,
    from: &'c [RemoteDocument],
    /// Document that the type itself names, if it may be fetched.
    described: Option<RemoteDocument>,
    /// Documents by provider, sorted by URL, with those of types last.
    pub(super) documents: BTreeMap<String, Vec<DocumentUrl>>,
    pub(super) tally: Tally,
}

impl<'c> DocumentChoice<'c> {
    /// Creates an empty selection. `overview` is the document that the type names.
    pub(super) fn new(
        kind: &'c str,
        overview: Option<&str>,
        trusted: &'c BTreeSet<String>,
        from: &'c [RemoteDocument],
    ) -> Self {
        let described = overview.and_then(|url| RemoteDocument::new(url).ok());
        Self {
            kind,
            trusted,
            from,
            described: described.filter(|document| is_allowed(document, from)),
            documents: BTreeMap::new(),
            tally: Tally::default(),
        }
    }

    /// Counts services without processing them.
    pub(super) fn count(&mut self, state: ServiceState, services: usize) {
        self.tally[state as usize] += services as u64;
    }

    /// Adds the documents of a service for the type.
    pub(super) fn take(&mut self, service: &BusinessService) {
        if !self.trusted.contains(&service.business) {
            return self.count(ServiceState::Untrusted, 1);
        }
        for binding in &service.bindings {
            let Some(overview) = overview(binding, self.kind) else {
                continue;
            };
            let state = self.add_documents(&service.business, binding, overview);
            self.count(state, 1);
        }
    }

    fn add_documents(
        &mut self,
        provider: &str,
        binding: &BindingTemplate,
        overview: Option<&str>,
    ) -> ServiceState {
        let endpoint = binding.endpoint.as_deref();
        let endpoint = endpoint.filter(|url| url.len() <= bounds::TEXT);
        let Some((endpoint, address)) =
            endpoint.and_then(|url| Some((url, RemoteDocument::new(url).ok()?)))
        else {
            return ServiceState::NoAddress;
        };
        let document_url = |document: RemoteDocument, of_type| DocumentUrl {
            url: document.url().to_owned(),
            endpoint: Some(endpoint.to_owned()),
            of_type,
        };
        let description = match overview {
            Some(url) => RemoteDocument::new(url),
            // Default: the service's own description.
            None => address.relative("?wsdl"),
        };
        let own = description.ok().filter(|own| is_allowed(own, self.from));
        let own = own.map(|own| document_url(own, false));
        let described = self.described.clone().filter(|_| overview.is_none());
        let described = described.map(|described| document_url(described, true));
        let mut state = ServiceState::Elsewhere;
        for wanted in own.into_iter().chain(described) {
            let documents = self.documents.entry(provider.to_owned()).or_default();
            match put(documents, wanted) {
                ServiceState::TooMany if state == ServiceState::Taken => {}
                outcome => state = outcome,
            }
        }
        state
    }
}

/// Adds a document to a provider's list.
fn put(documents: &mut Vec<DocumentUrl>, wanted: DocumentUrl) -> ServiceState {
    if documents.iter().any(|document| document.url == wanted.url) {
        // Two bindings share one document: its offers apply to the first.
        return ServiceState::Taken;
    }
    if documents.len() == DOCUMENTS {
        return ServiceState::TooMany;
    }
    let order = |document: &DocumentUrl| (document.of_type, document.url.clone());
    let at = documents.partition_point(|document| order(document) < order(&wanted));
    documents.insert(at, wanted);
    debug_assert!(documents.is_sorted_by_key(order), "documents out of order");
    debug_assert!(documents.len() <= DOCUMENTS, "more documents than allowed");
    ServiceState::Taken
}

fn is_allowed(document: &RemoteDocument, from: &[RemoteDocument]) -> bool {
    from.iter().any(|from| document.is_beside(from))
}

/// Document that a binding names for the type, if any; outer `None` if the binding does not implement the type.
fn overview<'b>(binding: &'b BindingTemplate, kind: &str) -> Option<Option<&'b str>> {
    let mut interfaces = binding.interfaces.iter();
    let found = interfaces.find(|interface| interface.tmodel == kind)?;
    Some(found.overview.as_deref())
}

#[cfg(test)]
mod tests {
    use crate::uddi::messages::Interface;

    use super::*;

    fn service(business: &str, bindings: Vec<BindingTemplate>) -> BusinessService {
        BusinessService {
            business: business.to_owned(),
            bindings,
            ..BusinessService::default()
        }
    }

    fn binding(endpoint: Option<&str>, tmodel: &str, overview: Option<&str>) -> BindingTemplate {
        let interface = |tmodel: &str, overview: Option<&str>| Interface {
            tmodel: tmodel.to_owned(),
            overview: overview.map(str::to_owned),
        };
        BindingTemplate {
            key: String::new(),
            endpoint: endpoint.map(str::to_owned),
            interfaces: vec![
                interface("other", Some("http://in/no")),
                interface(tmodel, overview),
            ],
        }
    }

    /// Fetched documents and states for these bindings of the trusted provider "ada".
    fn chosen(bindings: Vec<BindingTemplate>) -> (Vec<(String, String)>, Tally) {
        chosen_of(None, bindings)
    }

    /// The same for a type that names a document.
    fn chosen_of(
        overview: Option<&str>,
        bindings: Vec<BindingTemplate>,
    ) -> (Vec<(String, String)>, Tally) {
        let trusted = BTreeSet::from(["ada".to_owned()]);
        let from = [RemoteDocument::new("http://in/anything").unwrap()];
        let mut choice = DocumentChoice::new("t", overview, &trusted, &from);
        choice.take(&service("ada", bindings));
        let documents = choice.documents.remove("ada").unwrap_or_default();
        let pairs = documents
            .into_iter()
            .map(|document| (document.url, document.endpoint.unwrap()));
        (pairs.collect(), choice.tally)
    }

    fn fetched(binding: BindingTemplate) -> Vec<(String, String)> {
        chosen(vec![binding]).0
    }

    fn state(binding: BindingTemplate) -> &'static str {
        let (_, tally) = chosen(vec![binding]);
        assert_eq!(tally.iter().sum::<u64>(), 1);
        STATES[tally.iter().position(|count| *count == 1).unwrap()]
    }

    #[test]
    fn the_document_is_the_bindings_own_or_the_services_description() {
        let pair = |url: &str, endpoint: &str| vec![(url.to_owned(), endpoint.to_owned())];
        let own = binding(Some("http://out/a"), "t", Some("http://in/offers"));
        assert_eq!(fetched(own), pair("http://in/offers", "http://out/a"));
        let described = binding(Some("http://in/a?x=1"), "t", None);
        assert_eq!(
            fetched(described),
            pair("http://in/a?wsdl", "http://in/a?x=1")
        );
        assert_eq!(fetched(binding(Some("http://in/a"), "s", None)), []);
    }

    #[test]
    fn the_document_of_a_type_is_fetched_if_allowed_and_needed() {
        let urls = |overview: &str, binding: BindingTemplate| -> Vec<String> {
            let (pairs, _) = chosen_of(Some(overview), vec![binding]);
            pairs.into_iter().map(|(url, _)| url).collect()
        };
        let named = |overview| binding(Some("http://in/z"), "t", overview);
        let silent = || named(None);
        assert_eq!(
            urls("http://in/t", silent()),
            ["http://in/z?wsdl", "http://in/t"]
        );
        assert_eq!(urls("http://in/z?wsdl", silent()), ["http://in/z?wsdl"]);
        for elsewhere in [
            "http://out/t",
            "https://in/t",
            "http://in:81/t",
            "file:///t",
        ] {
            assert_eq!(
                urls(elsewhere, silent()),
                ["http://in/z?wsdl"],
                "{elsewhere}"
            );
        }
        assert_eq!(
            urls("http://in/t", named(Some("http://in/o"))),
            ["http://in/o"]
        );
        // The type's document does not replace the one that the binding names.
        let named = named(Some("http://out/o"));
        let (documents, tally) = chosen_of(Some("http://in/t"), vec![named]);
        assert_eq!(
            (documents.len(), tally[ServiceState::Elsewhere as usize]),
            (0, 1)
        );
        let outside = binding(Some("http://out/a"), "t", None);
        let (documents, tally) = chosen_of(Some("http://in/t"), vec![outside]);
        assert_eq!(
            documents,
            [("http://in/t".to_owned(), "http://out/a".to_owned())]
        );
        assert_eq!(tally[ServiceState::Taken as usize], 1);
    }

    #[test]
    fn services_passed_over_have_a_reason() {
        let at = |endpoint, overview| state(binding(endpoint, "t", overview));
        assert_eq!(at(Some("http://in/a"), None), "taken");
        assert_eq!(at(None, Some("http://in/offers")), "no-address");
        assert_eq!(
            at(Some("mailto:ada"), Some("http://in/offers")),
            "no-address"
        );
        let long = format!("http://in/{}", "x".repeat(bounds::TEXT));
        assert_eq!(at(Some(&long), Some("http://in/offers")), "no-address");
        // Same origin: scheme, host and port must all match.
        for url in [
            "http://out/a",
            "https://in/a",
            "http://in:81/a",
            "http://in.evil/a",
            "file:///etc/passwd",
        ] {
            assert_eq!(at(Some("http://in/a"), Some(url)), "elsewhere", "{url}");
        }
        assert_eq!(at(Some("http://out/a"), None), "elsewhere");
    }

    #[test]
    fn nobody_offers_without_being_trusted() {
        let trusted = BTreeSet::from(["ada".to_owned()]);
        let from = [RemoteDocument::new("http://in/").unwrap()];
        let mut choice = DocumentChoice::new("t", Some("http://in/t"), &trusted, &from);
        choice.take(&service(
            "eve",
            vec![binding(Some("http://in/a"), "t", None)],
        ));
        assert!(choice.documents.is_empty());
        assert_eq!(choice.tally[ServiceState::Untrusted as usize], 1);
    }

    #[test]
    fn a_provider_has_bounds_and_each_document_once() {
        let numbered = |number: usize| binding(Some(&format!("http://in/{number}")), "t", None);
        let (documents, tally) = chosen((0..DOCUMENTS + 2).map(numbered).collect());
        assert_eq!(documents.len(), DOCUMENTS);
        assert_eq!(tally[ServiceState::TooMany as usize], 2);
        let same = |endpoint| binding(Some(endpoint), "t", Some("http://in/offers"));
        let (documents, tally) = chosen(vec![same("http://in/b"), same("http://in/a")]);
        assert_eq!(
            documents,
            [("http://in/offers".to_owned(), "http://in/b".to_owned())]
        );
        assert_eq!(tally[ServiceState::Taken as usize], 2);
    }
}
