//! Entities of a registry, with the parts needed to find services.

/// A provider of services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Business {
    /// Key of the business.
    pub key: String,
    /// First name of the business.
    pub name: String,
    /// Categories of the business.
    pub categories: Vec<Category>,
}

/// A service of a business.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusinessService {
    /// Key of the service.
    pub key: String,
    /// Key of its business.
    pub business: String,
    /// First name of the service.
    pub name: String,
    /// Bindings of the service.
    pub bindings: Vec<BindingTemplate>,
}

/// One way to call a service (`bindingTemplate`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindingTemplate {
    /// Key of the binding.
    pub key: String,
    /// Address of the service. `None` if the access point is not a callable address, but a WSDL, a redirector or
    /// another binding.
    pub endpoint: Option<String>,
    /// Interface types that the binding implements.
    pub interfaces: Vec<Interface>,
}

/// An interface type that a binding implements (`tModelInstanceInfo`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Key of the type.
    pub tmodel: String,
    /// URL of a document about this implementation.
    pub overview: Option<String>,
}

/// A type of interfaces, categories or keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TModel {
    /// Key of the type.
    pub key: String,
    /// Name of the type.
    pub name: String,
    /// URL of a document about the type.
    pub overview: Option<String>,
    /// Categories of the type.
    pub categories: Vec<Category>,
}

/// Entities registered by a publisher, with key and name only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    /// Businesses.
    pub businesses: Vec<Business>,
    /// Types.
    pub tmodels: Vec<TModel>,
}

/// A category in a category system (`keyedReference`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Category {
    /// Key of the category system.
    pub tmodel: String,
    /// Name of the category, for people; may be empty.
    pub name: String,
    /// Value of the category.
    pub value: String,
}
