//! Reference-counted names, each stored once.

use std::collections::HashMap;
use std::sync::Arc;

/// Number of a name.
pub(super) type Id = u32;

/// The names in use.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    ids: HashMap<Arc<str>, Id>,
    /// Names and their reference counts, by number. An unused name releases its number.
    names: Vec<(Arc<str>, u32)>,
    free: Vec<Id>,
}

impl NameTable {
    /// Returns the number of a name and counts one more use.
    pub(super) fn keep(&mut self, name: &str) -> Id {
        if let Some(id) = self.find(name) {
            self.names[id as usize].1 += 1;
            return id;
        }
        let name: Arc<str> = name.into();
        let id = match self.free.pop() {
            Some(id) => {
                self.names[id as usize] = (name.clone(), 1);
                id
            }
            None => {
                self.names.push((name.clone(), 1));
                (self.names.len() - 1) as Id
            }
        };
        self.ids.insert(name, id);
        debug_assert_eq!(
            self.ids.len() + self.free.len(),
            self.names.len(),
            "each number has a name or is free"
        );
        id
    }

    /// The number of a name in use.
    pub(super) fn find(&self, name: &str) -> Option<Id> {
        self.ids.get(name).copied()
    }

    /// Counts one use fewer.
    pub(super) fn release(&mut self, id: Id) {
        let (name, uses) = &mut self.names[id as usize];
        debug_assert!(*uses > 0, "a name is released once for each use");
        *uses -= 1;
        if *uses == 0 {
            self.ids.remove(&**name);
            *name = "".into();
            self.free.push(id);
        }
    }

    /// The name with this number.
    pub(super) fn name(&self, id: Id) -> &str {
        &self.names[id as usize].0
    }
}
