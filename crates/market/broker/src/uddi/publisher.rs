//! Publication to a registry, in either version.

use bytes::Bytes;
use posthaste_broker_client::Endpoint;

use super::enrolment::Enrolment;
use super::messages::{Business, BusinessService, Registered, ReplyError, TModel, Version, reply};
use crate::BrokerError;

/// An authenticated session.
pub(super) struct Publisher {
    pub(super) version: Version,
    inquiry: Endpoint,
    publish: Endpoint,
    security: Endpoint,
    token: String,
}

impl Publisher {
    pub(super) async fn open(wanted: &Enrolment) -> Result<Self, BrokerError> {
        let version = wanted.version;
        let endpoint = |url: &str| Endpoint::new(url).map_err(failed);
        let security = endpoint(&wanted.security)?;
        let (inquiry, publish) = (endpoint(&wanted.inquiry)?, endpoint(&wanted.publish)?);
        let request = version.get_auth_token(&wanted.user, &wanted.password);
        let token = reply::auth_token(&call(&security, request).await?, version);
        Ok(Self {
            version,
            inquiry,
            publish,
            security,
            token: token.map_err(failed)?,
        })
    }

    /// Discards the token. On failure the token expires by itself.
    pub(super) async fn close(self) {
        let discard = self.version.discard_auth_token(&self.token);
        let _ = call(&self.security, discard).await;
    }

    /// Entities of the token's owner.
    pub(super) async fn own(&self) -> Result<Registered, BrokerError> {
        let request = self.version.get_registered_info(&self.token);
        reply::registered(&self.publish(request).await?, self.version).map_err(failed)
    }

    pub(super) async fn has_tmodel(&self, key: &str) -> Result<bool, BrokerError> {
        let found = self.ask(self.version.get_tmodel_detail(key)).await?;
        Ok(known(reply::tmodels(&found, self.version))?.is_some())
    }

    pub(super) async fn has_business(&self, key: &str) -> Result<bool, BrokerError> {
        let found = self.ask(self.version.get_business_detail(key)).await?;
        Ok(known(reply::businesses(&found, self.version))?.is_some())
    }

    pub(super) async fn services_of(
        &self,
        business: &str,
    ) -> Result<Vec<BusinessService>, BrokerError> {
        let found = self.ask(self.version.get_business_detail(business)).await?;
        reply::services_of(&found, self.version).map_err(failed)
    }

    pub(super) async fn service(&self, key: &str) -> Result<Option<BusinessService>, BrokerError> {
        let found = self.ask(self.version.get_service_detail([key])).await?;
        known(reply::services(&found, self.version))
    }

    /// Saves a type and returns its key, like the other save functions.
    pub(super) async fn save_tmodel(&self, tmodel: &TModel) -> Result<String, BrokerError> {
        let request = self.version.save_tmodel(&self.token, tmodel);
        let saved = reply::tmodels(&self.publish(request).await?, self.version);
        saved_as(saved, |saved| saved.key)
    }

    pub(super) async fn save_business(&self, business: &Business) -> Result<String, BrokerError> {
        let request = self.version.save_business(&self.token, business);
        let saved = reply::businesses(&self.publish(request).await?, self.version);
        saved_as(saved, |saved| saved.key)
    }

    pub(super) async fn save_service(
        &self,
        service: &BusinessService,
    ) -> Result<String, BrokerError> {
        let request = self.version.save_service(&self.token, service);
        let saved = reply::services(&self.publish(request).await?, self.version);
        saved_as(saved, |saved| saved.key)
    }

    async fn ask(&self, request: String) -> Result<Bytes, BrokerError> {
        call(&self.inquiry, request).await
    }

    async fn publish(&self, request: String) -> Result<Bytes, BrokerError> {
        call(&self.publish, request).await
    }
}

/// Key under which the registry has saved the entity.
fn saved_as<T>(
    saved: Result<Vec<T>, ReplyError>,
    key: impl FnOnce(T) -> String,
) -> Result<String, BrokerError> {
    let saved = saved.map_err(failed)?.into_iter().next();
    let key = saved.map(key).filter(|key| !key.is_empty());
    key.ok_or_else(|| failed("the registry does not say what it has saved"))
}

/// The entity of a single requested key, if it exists.
fn known<T>(found: Result<Vec<T>, ReplyError>) -> Result<Option<T>, BrokerError> {
    match found {
        Ok(found) => Ok(found.into_iter().next()),
        Err(error) if error.is_unknown_key() => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

async fn call(endpoint: &Endpoint, envelope: String) -> Result<Bytes, BrokerError> {
    endpoint
        .call(envelope, reply::LIMITS.total)
        .await
        .map_err(failed)
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> BrokerError {
    BrokerError::Registry(error.into())
}
