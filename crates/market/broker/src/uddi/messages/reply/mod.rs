//! Replies: lists, entities, tokens, and faults with a disposition report.
//!
//! One pass within [`LIMITS`], without a tree. Elements of other namespaces and unused elements of UDDI are skipped, so
//! registries may send additional data.

mod entities;
mod envelope;

use posthaste_soap::Limits;
use posthaste_soap::xml::XmlError;
use thiserror::Error;

use self::entities::{business, service, tmodel};
use self::envelope::{children, element_text, key, read_reply, read_reply_with};
use super::entity::{Business, BusinessService, Registered, TModel};
use super::version::Version;

/// Limits of a reply: 4 MiB in total, 16 KiB per text.
pub const LIMITS: Limits = Limits {
    total: 4 << 20,
    text: 16 << 10,
    ..Limits::description()
};

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage {
    /// Keys of the entries.
    pub keys: Vec<String>,
    /// Rest of the list after this page.
    pub rest: Rest,
}

/// The part of a list after a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing: this is the last page.
    None,
    /// More entries, starting with this one.
    From(usize),
    /// More entries, which the registry does not return.
    Cut,
}

/// Errors in a reply.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// Invalid XML, or beyond the limits.
    #[error("the registry's reply: {0}")]
    Xml(#[from] XmlError),
    /// Unexpected element or message.
    #[error("the registry replies with {found}, not with {wanted}")]
    Unexpected {
        /// Element or message found.
        found: String,
        /// Element or message expected.
        wanted: String,
    },
    /// A fault with a disposition report (version 3, section 4.8).
    #[error("the registry refuses: {message} ({code})")]
    Refused {
        /// Error code, such as `E_invalidKeyPassed`.
        code: String,
        /// Explanation.
        message: String,
    },
    /// Any other fault.
    #[error("the registry fails: {0}")]
    Fault(String),
}

type Parsed<T> = Result<T, ReplyError>;

impl ReplyError {
    /// Returns true if the registry does not know the requested key.
    pub fn is_unknown_key(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "E_invalidKeyPassed")
    }
}

/// Parses the reply to [`Version::find_business`] with the same `from`.
pub fn businesses_found(bytes: &[u8], version: Version, from: usize) -> Parsed<ListPage> {
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

/// Parses the reply to [`Version::find_service`] with the same `from`.
pub fn services_found(bytes: &[u8], version: Version, from: usize) -> Parsed<ListPage> {
    page(
        bytes,
        version,
        ["serviceList", "serviceInfos", "serviceInfo", "serviceKey"],
        from,
    )
}

/// Parses the reply to [`Version::get_service_detail`].
pub fn services(bytes: &[u8], version: Version) -> Parsed<Vec<BusinessService>> {
    let mut services = Vec::new();
    read_reply(bytes, version, "serviceDetail", |at, name| {
        if name == "businessService" {
            services.push(service(at, version)?);
        }
        Ok(())
    })?;
    Ok(services)
}

/// Parses the reply to [`Version::get_business_detail`].
pub fn businesses(bytes: &[u8], version: Version) -> Parsed<Vec<Business>> {
    let mut businesses = Vec::new();
    read_reply(bytes, version, "businessDetail", |at, name| {
        if name == "businessEntity" {
            businesses.push(business(at, version)?);
        }
        Ok(())
    })?;
    Ok(businesses)
}

/// Parses the services in the reply to [`Version::get_business_detail`].
pub fn services_of(bytes: &[u8], version: Version) -> Parsed<Vec<BusinessService>> {
    let mut services = Vec::new();
    read_reply(bytes, version, "businessDetail", |at, _| {
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

/// Parses the reply to [`Version::get_tmodel_detail`]. Omits deleted tModels.
pub fn tmodels(bytes: &[u8], version: Version) -> Parsed<Vec<TModel>> {
    let mut tmodels = Vec::new();
    read_reply(bytes, version, "tModelDetail", |at, name| {
        if name == "tModel" && key(at, "deleted") != "true" {
            tmodels.push(tmodel(at, version)?);
        }
        Ok(())
    })?;
    Ok(tmodels)
}

/// Parses the reply to [`Version::get_registered_info`].
pub fn registered(bytes: &[u8], version: Version) -> Parsed<Registered> {
    let mut all = Registered::default();
    read_reply(bytes, version, "registeredInfo", |at, name| match name {
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

/// Parses the reply to [`Version::get_auth_token`].
pub fn auth_token(bytes: &[u8], version: Version) -> Parsed<String> {
    let mut token = String::new();
    read_reply(bytes, version, "authToken", |at, name| {
        if name == "authInfo" {
            token = element_text(at)?;
        }
        Ok(())
    })?;
    if token.is_empty() {
        Err(ReplyError::Unexpected {
            found: "an empty authToken".to_owned(),
            wanted: "a token".to_owned(),
        })
    } else {
        Ok(token)
    }
}

fn page(bytes: &[u8], version: Version, names: [&str; 4], from: usize) -> Parsed<ListPage> {
    let [list, infos, info, identity] = names;
    let (mut keys, mut actual, mut truncated) = (Vec::new(), 0, false);
    read_reply_with(
        bytes,
        version,
        list,
        |at| truncated = key(at, "truncated") == "true",
        |at, name| match name {
            "listDescription" => children(at, version, |at, name| {
                if name == "actualCount" {
                    actual = element_text(at)?.parse().unwrap_or(0);
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
    // Registries disagree on `truncated` for a page of a longer list, so the count decides.
    let next = from.saturating_add(keys.len());
    let rest = match next <= actual {
        true if version.has_pages() && !keys.is_empty() => Rest::From(next),
        false if !truncated => Rest::None,
        _ => Rest::Cut,
    };
    Ok(ListPage { keys, rest })
}
