//! Objects as they may be shown: without the values of Secrets, and without what was made from those values.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;

use portolan_object::{Object, OwnerKind, counted};
use portolan_review::RenderedRepository;
use portolan_review::inventory::{self, PlacedObject};
use portolan_secret::{Mask, SecretTexts, hide_values, without_passwords};
use portolan_yaml::Node;

use crate::printer::{Hidden, Printer};

/// Whether the values of Secrets are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(crate) struct SecretArgs {
    /// Show the values of Secrets
    #[arg(long, help_heading = "Output")]
    pub(crate) show_secrets: bool,
}

impl SecretArgs {
    /// Lets the printer show what it otherwise hides.
    pub(crate) fn apply(self, printer: &Printer) {
        if self.show_secrets {
            printer.show_secrets();
        }
    }
}

/// Shows objects, and counts those in which something is hidden.
pub(crate) struct ObjectView {
    hidden: Hidden,
    secrets: Cell<usize>,
    others: Cell<usize>,
}

impl ObjectView {
    pub(crate) fn new(printer: &Printer) -> Self {
        Self {
            hidden: printer.hidden(),
            secrets: Cell::new(0),
            others: Cell::new(0),
        }
    }

    /// What the Secrets among the objects of one owner hold.
    pub(crate) fn secrets_of<'a>(
        &self,
        objects: impl IntoIterator<Item = &'a Object>,
        owner: OwnerKind,
    ) -> Mask {
        let mut texts = SecretTexts::default();
        if !self.hidden.is_shown() {
            for object in objects {
                texts.add_secret(object, owner);
            }
        }
        Mask::new(&texts)
    }

    /// The object's tree as it may be shown; `secrets` are those of its owner.
    pub(crate) fn show<'a>(&self, object: &'a Object, secrets: &Mask) -> Cow<'a, Node> {
        if self.hidden.is_shown() {
            return Cow::Borrowed(object.node());
        }
        let mut shown = self.hidden.secrets().hide_opened_fields(object);
        let without_values = hide_values(shown.as_ref().unwrap_or(object.node()));
        let is_secret = without_values.is_some();
        shown = without_values.or(shown);
        for mask in [&*self.hidden.mask(), secrets] {
            let masked = mask.node(shown.as_ref().unwrap_or(object.node()));
            shown = masked.or(shown);
        }
        let Some(shown) = shown else {
            return Cow::Borrowed(object.node());
        };
        let count = if is_secret {
            &self.secrets
        } else {
            &self.others
        };
        count.set(count.get() + 1);
        Cow::Owned(shown)
    }

    /// Says what is hidden, and how to see it; `skip` is the option that leaves Secrets out, if the command has one.
    pub(crate) fn tell(&self, printer: &Printer, skip: Option<&str>) {
        let count = self.secrets.get();
        if count > 0 {
            let (secrets, them) = number(count, "Secret", "it");
            let skip = skip.map_or_else(String::new, |skip| format!(", {skip} leaves {them} out"));
            printer.note(&format!(
                "the values of {secrets} are hidden, and no cluster takes {them} like this: --show-secrets shows the values{skip}"
            ));
        }
        let count = self.others.get();
        if count > 0 {
            let (objects, them) = number(count, "other object", "it");
            printer.note(&format!(
                "values that come from Secrets are hidden in {objects}, do not apply {them} like this: --show-secrets shows the values"
            ));
        }
    }
}

/// `1 Secret` and the word for it, or `3 Secrets` and `them`.
fn number(count: usize, what: &str, it: &'static str) -> (String, &'static str) {
    (counted(count, what), if count == 1 { it } else { "them" })
}

/// Shows the objects of a whole repository.
pub(crate) struct RepositoryView {
    view: ObjectView,
    /// The secrets of each owner, by cluster and name.
    secrets: HashMap<(String, String), Mask>,
}

impl RepositoryView {
    pub(crate) fn new(rendered: &RenderedRepository, printer: &Printer) -> Self {
        let view = ObjectView::new(printer);
        let mut by_owner: HashMap<(String, String), (OwnerKind, Vec<&Object>)> = HashMap::new();
        let objects = inventory::objects(rendered);
        for placed in &objects {
            let (_, objects) = by_owner
                .entry(owner_name(placed))
                .or_insert_with(|| (placed.owner.owner_kind(), Vec::new()));
            objects.push(placed.object);
        }
        let secrets = by_owner
            .into_iter()
            .map(|(owner, (kind, objects))| (owner, view.secrets_of(objects, kind)));
        Self {
            secrets: secrets.collect(),
            view,
        }
    }

    /// The object's tree as it may be shown.
    pub(crate) fn show<'a>(&self, placed: &PlacedObject<'a>) -> Cow<'a, Node> {
        let none = Mask::default();
        let secrets = self.secrets.get(&owner_name(placed)).unwrap_or(&none);
        self.view.show(placed.object, secrets)
    }

    /// An address as it may be shown: without a password.
    pub(crate) fn address<'a>(&self, address: &'a str) -> Cow<'a, str> {
        if self.view.hidden.is_shown() {
            Cow::Borrowed(address)
        } else {
            without_passwords(address)
        }
    }

    /// Says what is hidden, and how to see it.
    pub(crate) fn tell(&self, printer: &Printer) {
        self.view.tell(printer, Some("--skip-secrets"));
    }
}

fn owner_name(placed: &PlacedObject<'_>) -> (String, String) {
    (placed.cluster.name.to_string(), placed.owner.to_string())
}
