//! `index.json`: names of images in the layout.

use std::collections::BTreeMap;

use portolan_digest::Digest;
use portolan_image::{Descriptor, Index};

use crate::error::StoreError;
use crate::store::Store;

/// The annotation that holds a name.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

impl Store {
    /// The named images, sorted by name.
    pub fn refs(&self) -> Result<BTreeMap<String, Descriptor>, StoreError> {
        let named = read(self)?.manifests.into_iter().filter_map(|descriptor| {
            let name = name_of(&descriptor)?.to_owned();
            Some((name, descriptor))
        });
        Ok(named.collect())
    }

    /// Takes a name away; returns whether there was one.
    pub fn remove_ref(&self, name: &str) -> Result<bool, StoreError> {
        let _lock = self.index_lock()?;
        let mut index = read(self)?;
        let before = index.manifests.len();
        index
            .manifests
            .retain(|descriptor| name_of(descriptor) != Some(name));
        let removed = index.manifests.len() < before;
        if removed {
            write(self, &index)?;
        }
        Ok(removed)
    }

    /// Gives an image a name, in place of what had it.
    pub(crate) fn set_ref(&self, name: &str, image: &Descriptor) -> Result<(), StoreError> {
        check_name(name)?;
        let _lock = self.index_lock()?;
        let mut index = read(self)?;
        let mut named = image.clone();
        let annotations = named.annotations.get_or_insert_default();
        annotations.insert(REF_NAME.to_owned(), name.to_owned());
        // A write is synced, and most builds change nothing.
        if index.manifests.contains(&named) {
            return Ok(());
        }
        index
            .manifests
            .retain(|descriptor| name_of(descriptor) != Some(name));
        index.manifests.push(named);
        index.manifests.sort_by(|a, b| name_of(a).cmp(&name_of(b)));
        write(self, &index)
    }
}

/// The grammar of reference names: letters and digits, and between them single separators.
fn check_name(name: &str) -> Result<(), StoreError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:@/+".contains(&byte);
    let ends = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let bytes = name.as_bytes();
    let is_good = name.len() <= 255
        && bytes.iter().all(|byte| is_allowed(*byte))
        && ends(bytes.first().copied())
        && ends(bytes.last().copied());
    if is_good {
        Ok(())
    } else {
        Err(StoreError::RefName(name.to_owned()))
    }
}

pub(crate) fn name_of(descriptor: &Descriptor) -> Option<&str> {
    let annotations = descriptor.annotations.as_ref()?;
    annotations.get(REF_NAME).map(String::as_str)
}

/// The digest of the image that a list of referrers is about, if the name is that of such a list.
pub(crate) fn subject_of(name: &str) -> Option<Digest> {
    name.strip_prefix("sha256-")
        .and_then(|hex| format!("sha256:{hex}").parse().ok())
}

pub(crate) fn empty() -> Index {
    Index::new(Vec::new())
}

pub(crate) fn read(store: &Store) -> Result<Index, StoreError> {
    let Some(content) = store.read_document("index.json")? else {
        return Ok(empty());
    };
    serde_json::from_slice(&content).map_err(|source| StoreError::Parse {
        path: store.path("index.json"),
        source,
    })
}

pub(crate) fn write(store: &Store, index: &Index) -> Result<(), StoreError> {
    store.write_json("index.json", index)
}
