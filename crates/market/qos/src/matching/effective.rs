//! Effective values of an operation: its own take precedence over the default.

use crate::definition::{Custom, Definition, Info};

/// Effective values of an operation: its own, then the default.
#[derive(Clone, Copy)]
pub(super) struct Effective<'d> {
    own: Option<&'d Info>,
    default: &'d Info,
}

impl<'d> Effective<'d> {
    pub(super) fn new(operation: Option<&str>, definition: &'d Definition) -> Self {
        let own = operation.and_then(|name| definition.operations.get(name));
        let default = &definition.default;
        Self { own, default }
    }

    /// The operation's values, then the default.
    pub(super) fn infos(self) -> impl Iterator<Item = &'d Info> {
        self.own.into_iter().chain([self.default])
    }

    pub(super) fn stated<T>(self, get: impl Fn(&'d Info) -> Option<T>) -> Option<T> {
        self.infos().find_map(get)
    }

    /// Every custom value. Those of the default only if the operation has none of the same name.
    pub(super) fn customs<T: 'd>(
        self,
        get: fn(&Info) -> &Vec<Custom<T>>,
    ) -> impl Iterator<Item = &'d Custom<T>> {
        let own = self.own.map_or(&[][..], |own| get(own));
        let is_overridden = move |custom: &&Custom<T>| own.iter().any(|other| other.is_of(custom));
        let default = get(self.default).iter();
        own.iter()
            .chain(default.filter(move |custom| !is_overridden(custom)))
    }

    pub(super) fn custom<T: 'd>(
        self,
        get: fn(&Info) -> &Vec<Custom<T>>,
        like: &Custom<T>,
    ) -> Option<&'d Custom<T>> {
        self.stated(|info| get(info).iter().find(|custom| custom.is_of(like)))
    }
}
