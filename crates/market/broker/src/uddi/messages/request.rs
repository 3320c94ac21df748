//! Requests, each as a complete envelope.

use posthaste_soap::write::{attribute, close, element, open, text};

use super::entity::{BindingTemplate, Business, BusinessService, Category, TModel};
use super::version::Version;

/// Number of list entries requested at once.
pub const PAGE: usize = 100;

/// Writer of nested elements. Appends to a message.
struct ElementWriter<'o>(&'o mut String);

impl Version {
    /// Requests the businesses in a category, starting with number `from`, counted from 1.
    pub fn find_business(self, category: &Category, from: usize) -> String {
        self.list("find_business", from, |to| {
            to.categories(std::slice::from_ref(category));
        })
    }

    /// Requests the services that implement the interface type `tmodel`, starting with number `from`, counted from 1.
    pub fn find_service(self, tmodel: &str, from: usize) -> String {
        self.list("find_service", from, |to| {
            to.within("tModelBag", &[], |to| element("tModelKey", tmodel, to.0));
        })
    }

    /// Requests the services with these keys.
    pub fn get_service_detail<'k>(self, keys: impl IntoIterator<Item = &'k str>) -> String {
        self.keys("get_serviceDetail", "serviceKey", keys)
    }

    /// Requests the business with this key.
    pub fn get_business_detail(self, key: &str) -> String {
        self.keys("get_businessDetail", "businessKey", [key])
    }

    /// Requests the type with this key.
    pub fn get_tmodel_detail(self, key: &str) -> String {
        self.keys("get_tModelDetail", "tModelKey", [key])
    }

    /// Requests a token for publishing.
    pub fn get_auth_token(self, user: &str, password: &str) -> String {
        let who = [("userID", user), ("cred", password)];
        self.message("get_authToken", &who, |_| ())
    }

    /// Discards a token.
    pub fn discard_auth_token(self, token: &str) -> String {
        self.message("discard_authToken", &[], |to| {
            element("authInfo", token, to.0)
        })
    }

    /// Requests the entities that the token's owner has registered.
    pub fn get_registered_info(self, token: &str) -> String {
        let all = [("infoSelection", "all")];
        let selection = if self.has_pages() { &all[..] } else { &[] };
        self.message("get_registeredInfo", selection, |to| {
            element("authInfo", token, to.0)
        })
    }

    /// Saves a type.
    pub fn save_tmodel(self, token: &str, tmodel: &TModel) -> String {
        self.save("save_tModel", token, |to| {
            to.within("tModel", &[("tModelKey", &tmodel.key)], |to| {
                element("name", &tmodel.name, to.0);
                if let Some(url) = &tmodel.overview {
                    to.overview(url);
                }
                to.categories(&tmodel.categories);
            });
        })
    }

    /// Saves a business without services.
    pub fn save_business(self, token: &str, business: &Business) -> String {
        self.save("save_business", token, |to| {
            to.within("businessEntity", &[("businessKey", &business.key)], |to| {
                element("name", &business.name, to.0);
                to.categories(&business.categories);
            });
        })
    }

    /// Saves a service, new or existing.
    pub fn save_service(self, token: &str, service: &BusinessService) -> String {
        let keys = [
            ("serviceKey", service.key.as_str()),
            ("businessKey", &service.business),
        ];
        self.save("save_service", token, |to| {
            to.within("businessService", &keys, |to| {
                element("name", &service.name, to.0);
                to.within("bindingTemplates", &[], |to| {
                    for binding in &service.bindings {
                        to.binding(self, &service.key, binding);
                    }
                });
            });
        })
    }

    fn list(self, name: &str, from: usize, inner: impl FnOnce(&mut ElementWriter<'_>)) -> String {
        let (rows, from) = (PAGE.to_string(), from.to_string());
        let page = [("maxRows", rows.as_str()), ("listHead", &from)];
        if self.has_pages() {
            self.message(name, &page, inner)
        } else {
            self.message(name, &[], inner)
        }
    }

    fn keys<'k>(self, name: &str, kind: &str, keys: impl IntoIterator<Item = &'k str>) -> String {
        self.message(name, &[], |to| {
            keys.into_iter().for_each(|key| element(kind, key, to.0));
        })
    }

    fn save(self, name: &str, token: &str, inner: impl FnOnce(&mut ElementWriter<'_>)) -> String {
        self.message(name, &[], |to| {
            element("authInfo", token, to.0);
            inner(to);
        })
    }

    fn message(
        self,
        name: &str,
        attributes: &[(&str, &str)],
        inner: impl FnOnce(&mut ElementWriter<'_>),
    ) -> String {
        let own = [("xmlns", self.namespace())];
        let all: Vec<_> = own
            .into_iter()
            .chain(self.generic())
            .chain(attributes.iter().copied())
            .collect();
        let mut out = String::new();
        open(posthaste_soap::Version::Soap11, &mut out);
        ElementWriter(&mut out).within(name, &all, inner);
        close(&mut out);
        out
    }
}

impl ElementWriter<'_> {
    fn within(&mut self, name: &str, attributes: &[(&str, &str)], inner: impl FnOnce(&mut Self)) {
        self.0.push('<');
        self.0.push_str(name);
        for (name, value) in attributes {
            self.0.push_str(&format!(" {name}=\""));
            attribute(value, self.0);
            self.0.push('"');
        }
        self.0.push('>');
        inner(self);
        self.0.push_str(&format!("</{name}>"));
    }

    fn overview(&mut self, url: &str) {
        self.within("overviewDoc", &[], |to| element("overviewURL", url, to.0));
    }

    fn categories(&mut self, categories: &[Category]) {
        if categories.is_empty() {
            return;
        }
        self.within("categoryBag", &[], |to| {
            for Category {
                tmodel,
                name,
                value,
            } in categories
            {
                let pairs = [
                    ("tModelKey", tmodel.as_str()),
                    ("keyName", name),
                    ("keyValue", value),
                ];
                to.within("keyedReference", &pairs, |_| ());
            }
        });
    }

    fn binding(&mut self, version: Version, service: &str, binding: &BindingTemplate) {
        let keys = [
            ("bindingKey", binding.key.as_str()),
            ("serviceKey", service),
        ];
        self.within("bindingTemplate", &keys, |to| {
            if let Some(url) = &binding.endpoint {
                to.within("accessPoint", &[version.access_point(url)], |to| {
                    text(url, to.0)
                });
            }
            to.within("tModelInstanceDetails", &[], |to| {
                for interface in &binding.interfaces {
                    let key = [("tModelKey", interface.tmodel.as_str())];
                    to.within("tModelInstanceInfo", &key, |to| {
                        if let Some(url) = &interface.overview {
                            to.within("instanceDetails", &[], |to| to.overview(url));
                        }
                    });
                }
            });
        });
    }
}
