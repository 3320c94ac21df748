//! Registering a service, so that brokers find its offers: what is there already stays, and doing it again changes nothing.

use posthaste_offers::Endpoint;
use posthaste_uddi::{
    AnswerError, Binding, Business, Category, Interface, Service, TModel, Version, answer,
};

use crate::Error;

/// In this version publishers choose keys, by which they find again what they have registered.
const VERSION: Version = Version::V3;

/// The system of categories for types (version 3, section 11.1.1).
const TYPES: &str = "uddi:uddi.org:categorization:types";

/// A service to be registered, and with whom.
#[derive(Clone, Debug)]
pub struct Enrolment {
    /// Where the registry answers questions.
    pub inquiry: String,
    /// Where it is published to.
    pub publish: String,
    /// Where it gives tokens.
    pub security: String,
    /// Whom the registry knows.
    pub user: String,
    /// By what.
    pub password: String,
    /// The provider's key and name; one that is there stays as it is.
    pub business: (String, String),
    /// The service's key and name.
    pub service: (String, String),
    /// The key of the type of interface.
    pub kind: String,
    /// The WSDL of the type, which is registered, too, if it is not there.
    pub wsdl: Option<String>,
    /// Where the service is called.
    pub endpoint: String,
    /// Where its offers are, if not in its description at `?wsdl`.
    pub offers: Option<String>,
}

/// What stands in the registry now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolled {
    /// `tModel`, `business` or `service`.
    pub what: &'static str,
    /// Its key.
    pub key: String,
    /// Whether it was saved; else it had been there.
    pub saved: bool,
}

/// A registry that is written to.
struct Publisher {
    inquiry: Endpoint,
    publish: Endpoint,
    token: String,
    done: Vec<Enrolled>,
}

/// Registers a service, its business and, where it is missing, its type; and what gives keys of their kind, without which
/// a registry takes none (version 3, section 5.2.2.1).
pub fn enrol(wanted: &Enrolment) -> Result<Vec<Enrolled>, Error> {
    let done = posthaste_offers::wait(async {
        let endpoint = |url: &str| Endpoint::new(url).map_err(failed);
        let (inquiry, publish) = (endpoint(&wanted.inquiry)?, endpoint(&wanted.publish)?);
        let security = endpoint(&wanted.security)?;
        let request = VERSION.get_auth_token(&wanted.user, &wanted.password);
        let token =
            answer::auth_token(&call(&security, request).await?, VERSION).map_err(failed)?;
        let done = Vec::new();
        let mut publisher = Publisher {
            inquiry,
            publish,
            token,
            done,
        };
        let outcome = publisher.enrol(wanted).await;
        // One that is not discarded ends by itself.
        let discard = VERSION.discard_auth_token(&publisher.token);
        let _ = call(&security, discard).await;
        outcome.map(|()| publisher.done)
    });
    done?
}

impl Publisher {
    async fn enrol(&mut self, wanted: &Enrolment) -> Result<(), Error> {
        self.tmodel(wanted).await?;
        let (key, name) = wanted.business.clone();
        let business = Business {
            key,
            name,
            ..Business::default()
        };
        self.business(business).await?;
        let interface = Interface {
            tmodel: wanted.kind.clone(),
            overview: wanted.offers.clone(),
        };
        let binding = Binding {
            endpoint: Some(wanted.endpoint.clone()),
            interfaces: vec![interface],
            ..Binding::default()
        };
        let (key, name) = wanted.service.clone();
        let service = Service {
            key,
            business: wanted.business.0.clone(),
            name,
            bindings: vec![binding],
        };
        self.service(service).await
    }

    async fn tmodel(&mut self, wanted: &Enrolment) -> Result<(), Error> {
        if self.has_tmodel(&wanted.kind).await? {
            self.note("tModel", &wanted.kind, false);
            return Ok(());
        }
        let Some(wsdl) = &wanted.wsdl else {
            return Err(Error::Registry(format!(
                "there is no type {:?}: say where its WSDL is, and it is registered, too",
                wanted.kind
            )));
        };
        self.generator(&wanted.kind).await?;
        self.save_tmodel(TModel {
            key: wanted.kind.clone(),
            name: wanted.kind.clone(),
            overview: Some(wsdl.clone()),
            categories: vec![category("wsdlSpec")],
        })
        .await
    }

    async fn business(&mut self, business: Business) -> Result<(), Error> {
        let request = VERSION.get_business_detail(&business.key);
        let found = answer::businesses(&call(&self.inquiry, request).await?, VERSION);
        let is_there = known(found)?.is_some();
        if !is_there {
            self.generator(&business.key).await?;
            self.save(VERSION.save_business(&self.token, &business))
                .await?;
        }
        self.note("business", &business.key, !is_there);
        Ok(())
    }

    async fn service(&mut self, service: Service) -> Result<(), Error> {
        let request = VERSION.get_service_detail([service.key.as_str()]);
        let found = answer::services(&call(&self.inquiry, request).await?, VERSION);
        let mut found = known(found)?;
        // The registry has given those.
        for binding in found.iter_mut().flat_map(|found| &mut found.bindings) {
            binding.key.clear();
        }
        let is_same = found.as_ref() == Some(&service);
        if !is_same {
            if found.is_none() {
                self.generator(&service.key).await?;
            }
            self.save(VERSION.save_service(&self.token, &service))
                .await?;
        }
        self.note("service", &service.key, !is_same);
        Ok(())
    }

    /// Has there be what gives keys of this kind.
    async fn generator(&mut self, key: &str) -> Result<(), Error> {
        let partition = key.rsplit_once(':').map_or(key, |(partition, _)| partition);
        let key = format!("{partition}:keygenerator");
        if self.has_tmodel(&key).await? {
            return Ok(());
        }
        self.save_tmodel(TModel {
            name: key.clone(),
            key,
            overview: Some("http://uddi.org/pubs/uddi_v3.htm#keyGen".to_owned()),
            categories: vec![category("keyGenerator")],
        })
        .await
    }

    async fn has_tmodel(&self, key: &str) -> Result<bool, Error> {
        let reply = call(&self.inquiry, VERSION.get_tmodel_detail(key)).await?;
        Ok(known(answer::tmodels(&reply, VERSION))?.is_some())
    }

    async fn save_tmodel(&mut self, tmodel: TModel) -> Result<(), Error> {
        self.save(VERSION.save_tmodel(&self.token, &tmodel)).await?;
        self.note("tModel", &tmodel.key, true);
        Ok(())
    }

    async fn save(&self, request: String) -> Result<(), Error> {
        answer::done(&call(&self.publish, request).await?, VERSION).map_err(failed)
    }

    fn note(&mut self, what: &'static str, key: &str, saved: bool) {
        let key = key.to_owned();
        self.done.push(Enrolled { what, key, saved });
    }
}

fn category(value: &str) -> Category {
    Category {
        tmodel: TYPES.to_owned(),
        name: value.to_owned(),
        value: value.to_owned(),
    }
}

/// What there is under the one key that was asked for.
fn known<T>(found: Result<Vec<T>, AnswerError>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(found.into_iter().next()),
        Err(error) if error.is_unknown_key() => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

async fn call(endpoint: &Endpoint, envelope: String) -> Result<bytes::Bytes, Error> {
    endpoint
        .call(envelope, answer::LIMITS.total)
        .await
        .map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Registry(error.to_string())
}
