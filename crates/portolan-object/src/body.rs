//! The tree and the origin of an object: packed as long as nobody reads them.
//!
//! ```text
//! objects ──▶ trees and origins in a row ──▶ chunks of about 32 KiB ──▶ compressed
//! ```
//!
//! Objects that are packed together are compressed together, because the objects of one Kustomization or chart repeat
//! the same words. A chunk is not long, so that reading one object costs little. Chunks of what is packed later and
//! repeats them again share a [`PackDictionary`].

use std::sync::OnceLock;

use portolan_yaml::{List, Node, Text, Value, pack_tree, unpack_tree};

use crate::compressed::Compressed;
use crate::origin::{Act, Origin, Place, Step};
use crate::pack_dictionary::PackDictionary;

/// A chunk that has more bytes than this takes no further object.
const CHUNK_BYTES: usize = 32 << 10;

/// A tree and where it came from, packed or not.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    /// The two, once somebody has read them. They lie in a box, because most of those that are kept are packed.
    read: OnceLock<Box<(Node, Origin)>>,
    /// There if the two are not.
    packed: Option<PackedBody>,
}

/// The packed form of a body.
#[derive(Debug, Clone)]
pub(crate) struct PackedBody {
    chunk: Compressed,
    /// Where it begins in the chunk.
    at: u32,
}

/// Every act, by the number that stands for it.
const ACTS: [Act; 8] = [
    Act::Read,
    Act::Template,
    Act::Generate,
    Act::Patch,
    Act::Transform,
    Act::Substitute,
    Act::Decrypt,
    Act::Build,
];

impl Body {
    pub(crate) fn new(node: Node, origin: Origin) -> Self {
        Self {
            read: OnceLock::from(Box::new((node, origin))),
            packed: None,
        }
    }

    /// The tree; unpacks it the first time.
    pub(crate) fn node(&self) -> &Node {
        &self.read.get_or_init(|| Box::new(self.unpacked())).0
    }

    /// Where it came from; a packed body stays packed.
    pub(crate) fn origin(&self) -> Origin {
        match (self.read.get(), &self.packed) {
            (Some(read), _) => read.1.clone(),
            (None, Some(packed)) => Parts::find(&packed.chunk.bytes(), packed.at).origin(),
            (None, None) => Origin::default(),
        }
    }

    /// Both, to change; the packed form would not have the change.
    pub(crate) fn get_mut(&mut self) -> (&mut Node, &mut Origin) {
        self.node();
        self.packed = None;
        let (node, origin) = &mut **self.read.get_mut().expect("read above");
        (node, origin)
    }

    pub(crate) fn into_node(mut self) -> Node {
        let read = self.read.take();
        read.map_or_else(|| self.unpacked(), |read| *read).0
    }

    /// Keeps the packed forms of some bodies only.
    pub(crate) fn pack_all<'a>(
        bodies: impl Iterator<Item = &'a mut Self>,
        dictionary: Option<&PackDictionary>,
    ) {
        let mut chunk = Vec::new();
        let mut waiting: Vec<(&mut Self, u32)> = Vec::new();
        let end = |chunk: &mut Vec<u8>, waiting: &mut Vec<(&mut Self, u32)>| {
            let compressed = match dictionary {
                Some(dictionary) => dictionary.compress(chunk),
                None => Compressed::new(chunk),
            };
            chunk.clear();
            for (body, at) in waiting.drain(..) {
                let chunk = compressed.clone();
                body.packed = Some(PackedBody { chunk, at });
            }
        };
        for body in bodies {
            let read = body.read.take();
            let (Some(read), None) = (read, &body.packed) else {
                continue;
            };
            let (node, origin) = *read;
            if chunk.len() > CHUNK_BYTES {
                end(&mut chunk, &mut waiting);
            }
            waiting.push((body, chunk.len() as u32));
            pack(&node, &origin, &mut chunk);
        }
        if !waiting.is_empty() {
            end(&mut chunk, &mut waiting);
        }
    }

    /// The same, read; a packed one from its chunk, which is unpacked unless it is the last one.
    pub(crate) fn read(&self, last: &mut LastChunk) -> Self {
        let read = self.read.get().cloned();
        let packed = self.packed.as_ref();
        let read = read.or_else(|| Some(Box::new(last.unpack(packed?))));
        Self {
            read: read.map(OnceLock::from).unwrap_or_default(),
            packed: self.packed.clone(),
        }
    }

    /// The packed form, if it has one.
    pub(crate) fn packed(&self) -> Option<&PackedBody> {
        self.packed.as_ref()
    }

    fn unpacked(&self) -> (Node, Origin) {
        let packed = self.packed.as_ref().map(|packed| {
            let chunk = packed.chunk.bytes();
            Parts::find(&chunk, packed.at).unpack()
        });
        packed.expect("what was not read is packed")
    }
}

/// The chunk that was unpacked last: bodies that are read in order unpack each chunk once.
#[derive(Default)]
pub(crate) struct LastChunk(Option<(Compressed, Vec<u8>)>);

impl LastChunk {
    pub(crate) fn unpack(&mut self, packed: &PackedBody) -> (Node, Origin) {
        let last = self.0.take();
        let (chunk, bytes) = last
            .filter(|(chunk, _)| chunk.is(&packed.chunk))
            .unwrap_or_else(|| (packed.chunk.clone(), packed.chunk.bytes()));
        let unpacked = Parts::find(&bytes, packed.at).unpack();
        self.0 = Some((chunk, bytes));
        unpacked
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.node() == other.node() && self.origin() == other.origin()
    }
}

/// A packed body in its chunk: the length of the tree, the tree, the origin as a tree.
struct Parts<'a> {
    tree: &'a [u8],
    origin: &'a [u8],
}

const LENGTH_BYTES: usize = size_of::<u32>();

fn pack(node: &Node, origin: &Origin, chunk: &mut Vec<u8>) {
    let at = chunk.len();
    chunk.extend_from_slice(&[0; LENGTH_BYTES]);
    pack_tree(node, chunk);
    let length = (chunk.len() - at - LENGTH_BYTES) as u32;
    chunk[at..at + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    pack_tree(&list(origin.steps().into_iter().map(packed_step)), chunk);
}

impl<'a> Parts<'a> {
    fn find(chunk: &'a [u8], at: u32) -> Self {
        let found = chunk.get(at as usize..).and_then(|rest| {
            let (length, rest) = rest.split_at_checked(LENGTH_BYTES)?;
            let length = u32::from_le_bytes(length.try_into().ok()?);
            rest.split_at_checked(length as usize)
        });
        let (tree, origin) = found.expect("only `pack` writes chunks, and nobody changes them");
        Self { tree, origin }
    }

    fn unpack(&self) -> (Node, Origin) {
        (unpack_tree(self.tree), self.origin())
    }

    fn origin(&self) -> Origin {
        let steps = unpack_tree(self.origin);
        let steps = items(&steps).iter().filter_map(step);
        steps.fold(Origin::default(), |origin, step| origin.then(step))
    }
}

/// The number of the act, what did it, and the file at its position if there is one.
fn packed_step(step: &Step) -> Node {
    let act = ACTS.iter().position(|act| *act == step.act);
    let act = Node::int(act.unwrap_or_default() as i64);
    let by = Node::string(step.by.clone());
    let place = step.place.as_ref().map(|place| Node {
        at: place.at,
        ..Node::string(place.file.clone())
    });
    list([act, by].into_iter().chain(place))
}

fn step(packed: &Node) -> Option<Step> {
    let [act, by, place @ ..] = items(packed) else {
        return None;
    };
    let text = |node: &Node| Some(node.as_scalar()?.text.clone());
    let act = *ACTS.get(usize::try_from(act.as_i64()?).ok()?)?;
    let place = place.first().map(|file| {
        let name: Option<Text> = text(file);
        Place::new(name.unwrap_or_default(), file.at)
    });
    Some(Step {
        act,
        by: text(by)?,
        place,
    })
}

fn list(items: impl Iterator<Item = Node>) -> Node {
    Node::new(Value::List(List::from_items(items.collect())))
}

fn items(node: &Node) -> &[Node] {
    node.as_list().map_or(&[], |list| list.iter().as_slice())
}
