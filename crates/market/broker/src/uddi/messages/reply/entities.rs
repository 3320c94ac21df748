//! Entities, each parsed from its start tag to its end.

use posthaste_soap::xml::{Scanner, XmlError};

use super::envelope::{children, element_text, key};
use crate::uddi::messages::entity::{
    BindingTemplate, Business, BusinessService, Category, Interface, TModel,
};
use crate::uddi::messages::version::Version;

type Read<T> = Result<T, XmlError>;

pub(super) fn business(at: &mut Scanner<'_>, version: Version) -> Read<Business> {
    let mut business = Business {
        key: key(at, "businessKey"),
        ..Business::default()
    };
    children(at, version, |at, name| {
        match name {
            "name" if business.name.is_empty() => business.name = element_text(at)?,
            "categoryBag" => business.categories = categories(at, version)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(business)
}

pub(super) fn tmodel(at: &mut Scanner<'_>, version: Version) -> Read<TModel> {
    let mut tmodel = TModel {
        key: key(at, "tModelKey"),
        ..TModel::default()
    };
    children(at, version, |at, name| {
        match name {
            "name" => tmodel.name = element_text(at)?,
            "overviewDoc" if tmodel.overview.is_none() => {
                tmodel.overview = overview(at, version)?;
            }
            "categoryBag" => tmodel.categories = categories(at, version)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(tmodel)
}

pub(super) fn service(at: &mut Scanner<'_>, version: Version) -> Read<BusinessService> {
    let mut service = BusinessService {
        key: key(at, "serviceKey"),
        business: key(at, "businessKey"),
        ..BusinessService::default()
    };
    children(at, version, |at, name| {
        match name {
            "name" if service.name.is_empty() => service.name = element_text(at)?,
            "bindingTemplates" => children(at, version, |at, name| {
                if name == "bindingTemplate" {
                    service.bindings.push(binding(at, version)?);
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(service)
}

fn binding(at: &mut Scanner<'_>, version: Version) -> Read<BindingTemplate> {
    let mut binding = BindingTemplate {
        key: key(at, "bindingKey"),
        ..BindingTemplate::default()
    };
    children(at, version, |at, name| {
        match name {
            "accessPoint" => {
                let elsewhere = ["wsdlDeployment", "bindingTemplate", "hostingRedirector"];
                let is_endpoint = !elsewhere.contains(&&*key(at, "useType"));
                binding.endpoint =
                    Some(element_text(at)?).filter(|url| is_endpoint && !url.is_empty());
            }
            "tModelInstanceDetails" => children(at, version, |at, name| {
                if name == "tModelInstanceInfo" {
                    binding.interfaces.push(interface(at, version)?);
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(binding)
}

fn interface(at: &mut Scanner<'_>, version: Version) -> Read<Interface> {
    let mut interface = Interface {
        tmodel: key(at, "tModelKey"),
        overview: None,
    };
    children(at, version, |at, name| match name {
        "instanceDetails" => children(at, version, |at, name| {
            if name == "overviewDoc" && interface.overview.is_none() {
                interface.overview = overview(at, version)?;
            }
            Ok(())
        }),
        _ => Ok(()),
    })?;
    Ok(interface)
}

/// First URL of an `overviewDoc`.
fn overview(at: &mut Scanner<'_>, version: Version) -> Read<Option<String>> {
    let mut url = None;
    children(at, version, |at, name| {
        if name == "overviewURL" && url.is_none() {
            url = Some(element_text(at)?).filter(|url| !url.is_empty());
        }
        Ok(())
    })?;
    Ok(url)
}

fn categories(at: &mut Scanner<'_>, version: Version) -> Read<Vec<Category>> {
    let mut categories = Vec::new();
    children(at, version, |at, name| {
        if name == "keyedReference" {
            categories.push(Category {
                tmodel: key(at, "tModelKey"),
                name: key(at, "keyName"),
                value: key(at, "keyValue"),
            });
        }
        Ok(())
    })?;
    Ok(categories)
}
