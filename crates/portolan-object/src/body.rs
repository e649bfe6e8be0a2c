//! The tree of an object: in packed form as long as nobody reads it.

use std::sync::OnceLock;

use portolan_yaml::{Node, PackedNode};

/// A tree, a packed tree, or both.
#[derive(Debug, Clone)]
pub(crate) struct HeldNode {
    /// The tree, once somebody has read it.
    read: OnceLock<Node>,
    /// There if the tree is not.
    packed: Option<PackedNode>,
}

impl HeldNode {
    pub(crate) fn new(node: Node) -> Self {
        Self {
            read: OnceLock::from(node),
            packed: None,
        }
    }

    /// The tree; unpacks it the first time.
    pub(crate) fn get(&self) -> &Node {
        self.read.get_or_init(|| self.unpacked())
    }

    /// The tree, to change; the packed form would not have the change.
    pub(crate) fn get_mut(&mut self) -> &mut Node {
        self.get();
        self.packed = None;
        self.read.get_mut().expect("read above")
    }

    pub(crate) fn into_node(mut self) -> Node {
        let read = self.read.take();
        read.unwrap_or_else(|| self.unpacked())
    }

    /// Keeps the packed form only.
    pub(crate) fn pack(&mut self) {
        if let Some(node) = self.read.take()
            && self.packed.is_none()
        {
            self.packed = Some(PackedNode::pack(&node));
        }
    }

    fn unpacked(&self) -> Node {
        let packed = self.packed.as_ref().map(PackedNode::unpack);
        packed.expect("a tree that was not read is packed")
    }
}

impl PartialEq for HeldNode {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}
