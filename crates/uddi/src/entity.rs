//! What a registry holds, as far as services are found by it.

/// Who offers services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Business {
    /// Its key.
    pub key: String,
    /// Its first name.
    pub name: String,
    /// What it is counted among.
    pub categories: Vec<Category>,
}

/// A service of a business.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Its key.
    pub key: String,
    /// The key of the business whose it is.
    pub business: String,
    /// Its first name.
    pub name: String,
    /// Where and how it is called.
    pub bindings: Vec<Binding>,
}

/// One way to call a service (`bindingTemplate`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// Its key.
    pub key: String,
    /// Where it is called; none where the access point is something else than an address to call: a WSDL, a redirector,
    /// another binding.
    pub endpoint: Option<String>,
    /// What it can do.
    pub interfaces: Vec<Interface>,
}

/// A type of interface that a binding implements (`tModelInstanceInfo`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// The type's key.
    pub tmodel: String,
    /// A document about this implementation of it.
    pub overview: Option<String>,
}

/// A type: of interfaces, of categories, of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TModel {
    /// Its key.
    pub key: String,
    /// Its name.
    pub name: String,
    /// A document about it.
    pub overview: Option<String>,
    /// What it is counted among.
    pub categories: Vec<Category>,
}

/// What a publisher has registered, each with its key and name and no more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registered {
    /// Businesses.
    pub businesses: Vec<Business>,
    /// Types.
    pub tmodels: Vec<TModel>,
}

/// A place in a system of categories (`keyedReference`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Category {
    /// The key of the system.
    pub tmodel: String,
    /// The place's name, for people; may be empty.
    pub name: String,
    /// The place.
    pub value: String,
}
