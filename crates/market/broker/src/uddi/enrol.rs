//! Registration of a service in a UDDI registry. Idempotent: existing entries are kept.

use super::enrolment::{Enrolled, Enrolment};
use super::is_key;
use super::messages::{
    BindingTemplate, Business, BusinessService, Category, Interface, Registered, TModel, Version,
};
use super::publisher::Publisher;
use crate::BrokerError;

/// Registration in progress.
struct Registrar {
    publisher: Publisher,
    done: Vec<Enrolled>,
}

/// Registers a service, its business and, if missing, its type. Also registers missing key generators, because a
/// registry accepts no keys without them (version 3, section 5.2.2.1).
pub fn enrol(wanted: &Enrolment) -> Result<Vec<Enrolled>, BrokerError> {
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
    async fn enrol(&mut self, wanted: &Enrolment) -> Result<(), BrokerError> {
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
    async fn tmodel(&mut self, wanted: &Enrolment, own: &[TModel]) -> Result<String, BrokerError> {
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
            let remedy = "state the URL of its WSDL to register it, too";
            return Err(BrokerError::Registry(
                format!("there is no type {name:?}: {remedy}").into(),
            ));
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
    async fn business(
        &mut self,
        wanted: &Enrolment,
        own: &[Business],
    ) -> Result<String, BrokerError> {
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

    async fn service(&mut self, mut service: BusinessService) -> Result<(), BrokerError> {
        let mut found = if service.key.is_empty() {
            let own = self.publisher.services_of(&service.business).await?;
            own.into_iter()
                .find(|own| own.business == service.business && own.name == service.name)
        } else {
            self.publisher.service(&service.key).await?
        };
        if let Some(found) = &found {
            service.key.clone_from(&found.key);
        }
        // Binding keys are assigned by the registry.
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
    async fn generator(&mut self, key: &str) -> Result<(), BrokerError> {
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

    async fn save_tmodel(&mut self, tmodel: TModel) -> Result<String, BrokerError> {
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

    fn note(&mut self, entity: &'static str, key: &str, saved: bool) {
        let key = key.to_owned();
        self.done.push(Enrolled { entity, key, saved });
    }
}

fn given(entity: &str, key: &str) -> BrokerError {
    BrokerError::Registry(format!(
        "there is no {entity} {key:?}, and a registry of version 2 assigns the keys itself: state its name instead"
    ).into())
}
