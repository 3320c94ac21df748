//! Registration of a service in a UDDI registry. Idempotent: existing entries are kept.

use super::is_key;
use super::messages::{
    BindingTemplate, Business, BusinessService, Category, Interface, Registered, TModel, Version,
};
use super::publisher::Publisher;
use crate::Error;

/// A service to register, and the registry.
#[derive(Clone, Debug)]
pub struct Enrolment {
    /// UDDI version. In version 3 publishers choose the keys and use them to find existing entries. In version 2 the
    /// registry assigns the keys: an entry with an empty key here is found by its name.
    pub version: Version,
    /// URL of the inquiry API.
    pub inquiry: String,
    /// URL of the publication API.
    pub publish: String,
    /// URL of the security API.
    pub security: String,
    /// User name at the registry.
    pub user: String,
    /// Password of the user.
    pub password: String,
    /// Key and name of the provider's business. An existing business is not changed.
    pub business: (String, String),
    /// Key and name of the service.
    pub service: (String, String),
    /// Key of the interface type. In version 2 the name suffices if the user owns the type.
    pub kind: String,
    /// WSDL of the type. Needed to register a missing type.
    pub wsdl: Option<String>,
    /// Address of the service.
    pub endpoint: String,
    /// URL of its offers, if they are not in its description at `?wsdl`.
    pub offers: Option<String>,
}

/// A registered entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolled {
    /// `tModel`, `business` or `service`.
    pub what: &'static str,
    /// Key of the entity.
    pub key: String,
    /// True if it was saved, false if it already existed.
    pub saved: bool,
}

/// Registration in progress.
struct Registrar {
    publisher: Publisher,
    done: Vec<Enrolled>,
}

/// Registers a service, its business and, if missing, its type. Also registers missing key generators, because a
/// registry accepts no keys without them (version 3, section 5.2.2.1).
pub fn enrol(wanted: &Enrolment) -> Result<Vec<Enrolled>, Error> {
    let done = posthaste_broker_client::wait(async {
        let mut registrar = Registrar {
            publisher: Publisher::open(wanted).await?,
            done: Vec::new(),
        };
        let outcome = registrar.enrol(wanted).await;
        registrar.publisher.close().await;
        outcome.map(|()| registrar.done)
    });
    done?
}

impl Registrar {
    async fn enrol(&mut self, wanted: &Enrolment) -> Result<(), Error> {
        let own = match self.publisher.version {
            Version::V2 => self.publisher.own().await?,
            Version::V3 => Registered::default(),
        };
        let tmodel = self.tmodel(wanted, &own.tmodels).await?;
        let business = self.business(wanted, &own.businesses).await?;
        let interface = Interface {
            tmodel,
            overview: wanted.offers.clone(),
        };
        let binding = BindingTemplate {
            endpoint: Some(wanted.endpoint.clone()),
            interfaces: vec![interface],
            ..BindingTemplate::default()
        };
        let (key, name) = wanted.service.clone();
        let service = BusinessService {
            key,
            business,
            name,
            bindings: vec![binding],
        };
        self.service(service).await
    }

    /// Returns the key of the type. Registers it if missing.
    async fn tmodel(&mut self, wanted: &Enrolment, own: &[TModel]) -> Result<String, Error> {
        let name = &wanted.kind;
        let known = own.iter().find(|own| own.name == *name);
        let key = known.map_or(name, |known| &known.key);
        if is_key(key) && self.publisher.has_tmodel(key).await? {
            self.note("tModel", key, false);
            return Ok(key.clone());
        }
        let gives_keys = self.publisher.version == Version::V2;
        let key = match (gives_keys, is_key(name)) {
            (true, true) => return Err(given("type", name)),
            (true, false) => String::new(),
            (false, _) => name.clone(),
        };
        let Some(wsdl) = &wanted.wsdl else {
            let words = "say where its WSDL is, and it is registered, too";
            return Err(Error::Registry(format!(
                "there is no type {name:?}: {words}"
            )));
        };
        self.generator(&key).await?;
        self.save_tmodel(TModel {
            key,
            name: name.clone(),
            overview: Some(wsdl.clone()),
            categories: vec![self.category("wsdlSpec")],
        })
        .await
    }

    /// Returns the key of the business. Registers it if missing.
    async fn business(&mut self, wanted: &Enrolment, own: &[Business]) -> Result<String, Error> {
        let (key, name) = wanted.business.clone();
        let known = own.iter().find(|own| key.is_empty() && own.name == name);
        let key = known.map_or(key, |known| known.key.clone());
        if !key.is_empty() && self.publisher.has_business(&key).await? {
            self.note("business", &key, false);
            return Ok(key);
        }
        if !key.is_empty() && self.publisher.version == Version::V2 {
            return Err(given("business", &key));
        }
        self.generator(&key).await?;
        let business = Business {
            key,
            name,
            ..Business::default()
        };
        let key = self.publisher.save_business(&business).await?;
        self.note("business", &key, true);
        Ok(key)
    }

    async fn service(&mut self, mut service: BusinessService) -> Result<(), Error> {
        let mut found = match service.key.is_empty() {
            true => {
                let own = self.publisher.services_of(&service.business).await?;
                own.into_iter()
                    .find(|own| own.business == service.business && own.name == service.name)
            }
            false => self.publisher.service(&service.key).await?,
        };
        if let Some(found) = &found {
            service.key.clone_from(&found.key);
        }
        // BindingTemplate keys are assigned by the registry.
        for binding in found.iter_mut().flat_map(|found| &mut found.bindings) {
            binding.key.clear();
        }
        if found.as_ref() == Some(&service) {
            self.note("service", &service.key, false);
            return Ok(());
        }
        if found.is_none() {
            self.generator(&service.key).await?;
        }
        let key = self.publisher.save_service(&service).await?;
        self.note("service", &key, true);
        Ok(())
    }

    /// Registers the key generator for this key, if the key needs one and it is missing.
    async fn generator(&mut self, key: &str) -> Result<(), Error> {
        let Some((partition, _)) = key.rsplit_once(':') else {
            return Ok(());
        };
        let key = format!("{partition}:keygenerator");
        if self.publisher.has_tmodel(&key).await? {
            return Ok(());
        }
        let generator = TModel {
            name: key.clone(),
            key,
            overview: Some("http://uddi.org/pubs/uddi_v3.htm#keyGen".to_owned()),
            categories: vec![self.category("keyGenerator")],
        };
        self.save_tmodel(generator).await.map(drop)
    }

    async fn save_tmodel(&mut self, tmodel: TModel) -> Result<String, Error> {
        let key = self.publisher.save_tmodel(&tmodel).await?;
        self.note("tModel", &key, true);
        Ok(key)
    }

    fn category(&self, value: &str) -> Category {
        Category {
            tmodel: self.publisher.version.types().to_owned(),
            name: value.to_owned(),
            value: value.to_owned(),
        }
    }

    fn note(&mut self, what: &'static str, key: &str, saved: bool) {
        let key = key.to_owned();
        self.done.push(Enrolled { what, key, saved });
    }
}

fn given(what: &str, key: &str) -> Error {
    Error::Registry(format!(
        "there is no {what} {key:?}, and in version 2 it is the registry that gives keys: say what it is called"
    ))
}
