//! Namespace declarations in scope of a streamed header, copied, because the message passes by.

use super::Head;
use crate::Limits;
use crate::xml::Markup;

/// The declarations in scope.
#[derive(Debug)]
pub(super) struct Scope {
    bindings: Vec<CopiedBinding>,
    /// Prefix and namespace of each declaration, one after another.
    text: String,
    of_one: usize,
    in_all: usize,
}

#[derive(Debug)]
struct CopiedBinding {
    depth: usize,
    /// Start of its prefix in the text.
    prefix: usize,
    /// End of its prefix and start of its namespace, which ends at the start of the next.
    namespace: usize,
}

impl Scope {
    pub(super) const fn new(limits: &Limits) -> Self {
        Self {
            bindings: Vec::new(),
            text: String::new(),
            of_one: limits.namespaces,
            in_all: limits.scope,
        }
    }

    /// Reads the rest of a tag at `depth` and adds its declarations. A namespace written with character references is
    /// not recognised.
    ///
    /// # Errors
    /// Too many declarations, or a malformed tag.
    pub(super) fn enter(&mut self, depth: usize, markup: &mut Markup<'_>) -> Result<(), Head> {
        let outer = self.bindings.len();
        while let Some((key, value)) = markup.attribute().map_err(|_| Head::NotSoap)? {
            let prefix = match (key.prefix, key.local) {
                ("", "xmlns") => "",
                ("xmlns", prefix) => prefix,
                _ => continue,
            };
            if self.bindings.len() - outer >= self.of_one || self.bindings.len() >= self.in_all {
                return Err(Head::TooMuch);
            }
            let start = self.text.len();
            self.bindings.push(CopiedBinding {
                depth,
                prefix: start,
                namespace: start + prefix.len(),
            });
            self.text.push_str(prefix);
            self.text.push_str(value);
        }
        markup.close().map_err(|_| Head::NotSoap).map(drop)
    }

    /// Removes the declarations of the element at `depth`, which ends.
    pub(super) fn leave(&mut self, depth: usize) {
        while let Some(last) = self.bindings.pop_if(|last| last.depth == depth) {
            self.text.truncate(last.prefix);
        }
    }

    /// Namespace of a prefix. The empty prefix is in none by default. `None` for an undeclared one.
    pub(super) fn namespace(&self, prefix: &str) -> Option<&str> {
        let mut end = self.text.len();
        for binding in self.bindings.iter().rev() {
            if self.text[binding.prefix..binding.namespace] == *prefix {
                return Some(&self.text[binding.namespace..end]);
            }
            end = binding.prefix;
        }
        prefix.is_empty().then_some("")
    }
}
