//! Secrets as they may be shown: their keys, not their values.

use std::borrow::Cow;

use portolan_object::Object;
use portolan_yaml::{Node, Value};

use crate::printer::Printer;

/// What stands for a hidden value; in `data` it is base64 of the same word.
const HIDDEN: &str = "hidden";
const HIDDEN_BASE64: &str = "aGlkZGVu";

/// Whether the values of Secrets are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(crate) struct SecretArgs {
    /// Show the values of Secrets
    #[arg(long)]
    pub(crate) show_secrets: bool,
}

impl SecretArgs {
    /// Lets the printer show what it otherwise hides.
    pub(crate) fn apply(self, printer: &Printer) {
        if self.show_secrets {
            printer.show_secrets();
        }
    }

    /// The object's tree as it may be shown.
    pub(crate) fn shown(self, object: &Object) -> Cow<'_, Node> {
        if object.gvk().is("", "Secret") && !self.show_secrets {
            Cow::Owned(hidden(object.node()))
        } else {
            Cow::Borrowed(object.node())
        }
    }
}

/// The Secret with its values hidden; its keys stay.
fn hidden(secret: &Node) -> Node {
    let mut secret = secret.clone();
    for (field, stand_in) in [("data", HIDDEN_BASE64), ("stringData", HIDDEN)] {
        if let Some(Value::Map(map)) = secret.get_mut(field).map(|node| &mut node.value) {
            for entry in map.entries_mut() {
                entry.value = Node::string(stand_in);
            }
        }
    }
    if let Some(metadata) = secret.get_mut("metadata").and_then(Node::as_map_mut)
        && let Some(annotations) = metadata.get_mut("annotations").and_then(Node::as_map_mut)
    {
        // It repeats the whole object.
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    secret
}
