//! Replies: lists, entities, tokens, and faults with their disposition report.
//!
//! One pass within [`LIMITS`], no tree. Elements of other namespaces are passed over, as are elements of the registry's own
//! that nothing here needs; so a registry may say more than is understood.

mod entities;
mod envelope;

use posthaste_soap::Limits;
use posthaste_soap::xml::XmlError;
use thiserror::Error;

use self::entities::{business, service, tmodel};
use self::envelope::{children, key, reply, reply_with, words};
use crate::Version;
use crate::entity::{Business, Registered, Service, TModel};

/// What a reply may use: 4 MiB in all, 16 KiB for one text.
pub const LIMITS: Limits = Limits {
    total: 4 << 20,
    text: 16 << 10,
    ..Limits::description()
};

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The entries' keys.
    pub keys: Vec<String>,
    /// What of the list is not in it.
    pub rest: Rest,
}

/// What follows a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing: the list is at its end.
    None,
    /// More, from this entry on.
    From(usize),
    /// More, which the registry does not give.
    Cut,
}

/// Why a reply is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnswerError {
    /// Not XML, or more of it than is allowed.
    #[error("the registry's reply: {0}")]
    Xml(#[from] XmlError),
    /// Something else than the message that was to come.
    #[error("the registry replies with {found}, not with {wanted}")]
    Unexpected {
        /// What it is.
        found: String,
        /// What was wanted.
        wanted: String,
    },
    /// A fault with a disposition report (version 3, section 4.8).
    #[error("the registry refuses: {words} ({code})")]
    Refused {
        /// As `E_invalidKeyPassed`.
        code: String,
        /// What it says.
        words: String,
    },
    /// Any other fault.
    #[error("the registry fails: {0}")]
    Fault(String),
}

type Answer<T> = Result<T, AnswerError>;

impl AnswerError {
    /// Whether the registry has nothing of the key that was asked for.
    pub fn is_unknown_key(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "E_invalidKeyPassed")
    }
}

/// The reply to [`Version::find_business`] from the `from`th on.
pub fn businesses_found(bytes: &[u8], version: Version, from: usize) -> Answer<Page> {
    page(
        bytes,
        version,
        [
            "businessList",
            "businessInfos",
            "businessInfo",
            "businessKey",
        ],
        from,
    )
}

/// The reply to [`Version::find_service`] from the `from`th on.
pub fn services_found(bytes: &[u8], version: Version, from: usize) -> Answer<Page> {
    page(
        bytes,
        version,
        ["serviceList", "serviceInfos", "serviceInfo", "serviceKey"],
        from,
    )
}

/// The reply to [`Version::get_service_detail`].
pub fn services(bytes: &[u8], version: Version) -> Answer<Vec<Service>> {
    let mut services = Vec::new();
    reply(bytes, version, "serviceDetail", |at, name| {
        if name == "businessService" {
            services.push(service(at, version)?);
        }
        Ok(())
    })?;
    Ok(services)
}

/// The reply to [`Version::get_business_detail`].
pub fn businesses(bytes: &[u8], version: Version) -> Answer<Vec<Business>> {
    let mut businesses = Vec::new();
    reply(bytes, version, "businessDetail", |at, name| {
        if name == "businessEntity" {
            businesses.push(business(at, version)?);
        }
        Ok(())
    })?;
    Ok(businesses)
}

/// The services in the reply to [`Version::get_business_detail`].
pub fn services_of(bytes: &[u8], version: Version) -> Answer<Vec<Service>> {
    let mut services = Vec::new();
    reply(bytes, version, "businessDetail", |at, _| {
        children(at, version, |at, name| match name {
            "businessServices" => children(at, version, |at, _| {
                services.push(service(at, version)?);
                Ok(())
            }),
            _ => Ok(()),
        })
    })?;
    Ok(services)
}

/// The reply to [`Version::get_tmodel_detail`]; those that have been deleted are not in it.
pub fn tmodels(bytes: &[u8], version: Version) -> Answer<Vec<TModel>> {
    let mut tmodels = Vec::new();
    reply(bytes, version, "tModelDetail", |at, name| {
        if name == "tModel" && key(at, "deleted") != "true" {
            tmodels.push(tmodel(at, version)?);
        }
        Ok(())
    })?;
    Ok(tmodels)
}

/// The reply to [`Version::get_registered_info`].
pub fn registered(bytes: &[u8], version: Version) -> Answer<Registered> {
    let mut all = Registered::default();
    reply(bytes, version, "registeredInfo", |at, name| match name {
        "businessInfos" => children(at, version, |at, name| {
            if name == "businessInfo" {
                all.businesses.push(business(at, version)?);
            }
            Ok(())
        }),
        "tModelInfos" => children(at, version, |at, name| {
            if name == "tModelInfo" {
                all.tmodels.push(tmodel(at, version)?);
            }
            Ok(())
        }),
        _ => Ok(()),
    })?;
    Ok(all)
}

/// The reply to [`Version::get_auth_token`].
pub fn auth_token(bytes: &[u8], version: Version) -> Answer<String> {
    let mut token = String::new();
    reply(bytes, version, "authToken", |at, name| {
        if name == "authInfo" {
            token = words(at)?;
        }
        Ok(())
    })?;
    match token.is_empty() {
        true => Err(AnswerError::Unexpected {
            found: "an empty authToken".to_owned(),
            wanted: "a token".to_owned(),
        }),
        false => Ok(token),
    }
}

fn page(bytes: &[u8], version: Version, names: [&str; 4], from: usize) -> Answer<Page> {
    let [list, infos, info, identity] = names;
    let (mut keys, mut actual, mut truncated) = (Vec::new(), 0, false);
    reply_with(
        bytes,
        version,
        list,
        |at| truncated = key(at, "truncated") == "true",
        |at, name| match name {
            "listDescription" => children(at, version, |at, name| {
                if name == "actualCount" {
                    actual = words(at)?.parse().unwrap_or(0);
                }
                Ok(())
            }),
            _ if name == infos => children(at, version, |at, name| {
                if name == info {
                    keys.push(key(at, identity));
                }
                Ok(())
            }),
            _ => Ok(()),
        },
    )?;
    // Whether what a page leaves out makes it truncated, registries see differently; the count tells.
    let next = from.saturating_add(keys.len());
    let rest = match next <= actual {
        true if version.has_pages() && !keys.is_empty() => Rest::From(next),
        false if !truncated => Rest::None,
        _ => Rest::Cut,
    };
    Ok(Page { keys, rest })
}
