//! A source in memory: for tests, and for files that a program makes itself.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};

use crate::source::{Listed, ListedKind, OpenFile, Source, Stamp};

/// Files, directories and links in memory.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    nodes: BTreeMap<String, Item>,
}

#[derive(Debug, Clone)]
struct Item {
    kind: ListedKind,
    content: Vec<u8>,
    mode: u32,
    attributes: BTreeMap<String, Vec<u8>>,
}

impl Memory {
    /// Puts a file at a path; directories on the way are made.
    pub fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> &mut Self {
        self.put(path, ListedKind::File, mode, content)
    }

    /// Puts a directory at a path.
    pub fn directory(&mut self, path: &str, mode: u32) -> &mut Self {
        self.put(path, ListedKind::Directory, mode, &[])
    }

    /// Puts a link at a path.
    pub fn link(&mut self, path: &str, target: &str) -> &mut Self {
        self.put(path, ListedKind::Link(target.into()), 0o777, &[])
    }

    /// Puts something at a path that no image can hold.
    pub fn special(&mut self, path: &str, what: &'static str) -> &mut Self {
        self.put(path, ListedKind::Special(what), 0o644, &[])
    }

    /// Gives the file at a path an extended attribute.
    pub fn attribute(&mut self, path: &str, name: &str, value: &[u8]) -> &mut Self {
        if let Some(item) = self.nodes.get_mut(path) {
            item.attributes.insert(name.to_owned(), value.to_vec());
        }
        self
    }

    /// Takes away what is at a path and below it.
    pub fn remove(&mut self, path: &str) -> &mut Self {
        let below = format!("{path}/");
        self.nodes
            .retain(|name, _| name != path && !name.starts_with(&below));
        self
    }

    fn put(&mut self, path: &str, kind: ListedKind, mode: u32, content: &[u8]) -> &mut Self {
        for directory in crate::entry::ancestors(path) {
            self.nodes.entry(directory.to_owned()).or_insert(Item {
                kind: ListedKind::Directory,
                content: Vec::new(),
                mode: 0o755,
                attributes: BTreeMap::new(),
            });
        }
        let item = Item {
            kind,
            content: content.to_vec(),
            mode,
            attributes: BTreeMap::new(),
        };
        self.nodes.insert(path.to_owned(), item);
        self
    }

    fn get(&self, path: &str) -> io::Result<&Item> {
        self.nodes
            .get(path)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

impl Source for Memory {
    fn list(&self, directory: &str) -> io::Result<Vec<Listed>> {
        if !directory.is_empty() && self.get(directory)?.kind != ListedKind::Directory {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        let inside = self
            .nodes
            .iter()
            .filter(|(path, _)| crate::entry::parent_of(path) == directory);
        Ok(inside
            .map(|(path, item)| Listed {
                name: path.rsplit('/').next().unwrap_or(path).into(),
                kind: item.kind.clone(),
                mode: item.mode,
                stamp: stamp(item),
            })
            .collect())
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn OpenFile>> {
        let item = self.get(path)?;
        if item.kind != ListedKind::File {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        Ok(Box::new(File {
            stamp: stamp(item),
            content: Cursor::new(item.content.clone()),
        }))
    }

    fn attribute_names(&self, path: &str) -> io::Result<Vec<String>> {
        Ok(self.get(path)?.attributes.keys().cloned().collect())
    }

    fn attribute(&self, path: &str, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.get(path)?.attributes.get(name).cloned())
    }
}

/// A state that is always young, so that nothing in memory is ever remembered.
fn stamp(item: &Item) -> Stamp {
    Stamp {
        size: item.content.len() as u64,
        modified: i64::MAX,
        ..Stamp::default()
    }
}

struct File {
    stamp: Stamp,
    content: Cursor<Vec<u8>>,
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.content.read(buffer)
    }
}

impl OpenFile for File {
    fn stamp(&self) -> io::Result<Stamp> {
        Ok(self.stamp)
    }
}
