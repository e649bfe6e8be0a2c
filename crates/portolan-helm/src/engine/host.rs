//! The host of one render: a fixed clock, random numbers seeded by the release's name, and the objects that `lookup`
//! can find.

use std::collections::BTreeMap;
use std::sync::Arc;

use portolan_gotmpl::{Host, LookupQuery, Seeded, Value};

use crate::render::TemplateInput;
use crate::values::Tree;

/// Answers `lookup`: from an export of a cluster, or from what a repository itself renders.
pub trait Lookup: Send + Sync {
    /// The object or list asked for; `None` where there is none.
    fn lookup(&self, query: &LookupQuery<'_>) -> Option<Tree>;
}

/// The host of one render.
pub(crate) struct RenderHost {
    seeded: Seeded,
    is_live: bool,
    lookup: Option<Arc<dyn Lookup>>,
}

impl RenderHost {
    pub(crate) fn new(input: &TemplateInput) -> Self {
        let release = &input.release;
        let named = || format!("{}/{}", release.namespace, release.name);
        let seed = input.live_seed.clone().unwrap_or_else(named);
        Self {
            seeded: Seeded::new(&seed, input.now),
            is_live: input.live_seed.is_some(),
            lookup: input.lookup.clone(),
        }
    }
}

impl Host for RenderHost {
    fn now(&self) -> i128 {
        self.seeded.now()
    }

    fn fill_random(&mut self, buffer: &mut [u8]) {
        self.seeded.fill_random(buffer);
    }

    fn salt(&mut self, password: &[u8]) -> [u8; 16] {
        if self.is_live {
            let mut salt = [0; 16];
            self.fill_random(&mut salt);
            return salt;
        }
        self.seeded.salt(password)
    }

    fn quick_keys(&self) -> bool {
        !self.is_live
    }

    fn lookup(&mut self, query: &LookupQuery<'_>) -> Value {
        let found = self.lookup.as_ref().and_then(|lookup| lookup.lookup(query));
        found.map_or_else(|| Value::map(BTreeMap::new()), |tree| tree.thaw())
    }
}
