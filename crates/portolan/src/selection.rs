//! Which Kustomizations, HelmReleases and objects are selected: the arguments that `test`, `diff`, `build` and `get`
//! share.

use std::marker::PhantomData;

use clap::ValueEnum;
use clap::builder::{PossibleValue, TypedValueParser, ValueParserFactory};
use portolan_flux::{OwnerKinds, Selection};
use portolan_object::{ObjectName, ObjectSelection, Selector, SelectorError};

/// The kind that defines kinds.
const CRD: &str = "CustomResourceDefinition";

/// A namespace, labels and kinds.
///
/// `--skip-crds=false` is for those who come from tools that skip them by default.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectionArgs {
    /// Only Kustomizations and HelmReleases in this namespace; for `get`, whatever is listed
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    /// In all namespaces, which is the default
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,

    /// Only objects with these labels, as in `app=web,tier!=test`
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = parse_selector)]
    selector: Option<Selector>,

    /// Only objects of these kinds, as in `Deployment,sts,certificates.cert-manager.io`
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    only_kinds: Vec<String>,

    /// No objects of these kinds
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    skip_kinds: Vec<String>,

    /// Only CustomResourceDefinitions
    #[arg(long, conflicts_with = "only_kinds")]
    only_crds: bool,

    /// No CustomResourceDefinitions
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_possible_values = true, hide_default_value = true)]
    skip_crds: bool,

    /// No Secrets
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_possible_values = true, hide_default_value = true)]
    skip_secrets: bool,

    /// Releases are always rendered; other tools have to be told
    #[arg(long, hide = true)]
    enable_helm: bool,
}

/// What to build, compare or test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OwnersWord {
    /// Kustomizations
    #[value(alias = "kustomizations", alias = "kustomization")]
    Ks,
    /// HelmReleases
    #[value(alias = "helmreleases", alias = "helmrelease")]
    Hr,
    /// Both
    All,
}

/// The first argument: one of a few words, or already a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Word<W> {
    /// A word that says of what kind the answer is.
    What(W),
    /// A name, whose kind is not said apart.
    Name(String),
}

/// Reads a [`Word`], and tells shells and `--help` of the words.
#[derive(Debug)]
pub(crate) struct WordParser<W>(PhantomData<W>);

fn parse_selector(text: &str) -> Result<Selector, String> {
    text.parse()
        .map_err(|error: SelectorError| error.to_string())
}

impl SelectionArgs {
    /// What objects must have, besides one of the names.
    pub(crate) fn objects(&self, names: &[String]) -> ObjectSelection {
        let kind = |is_given: bool, kind: &str| is_given.then(|| kind.to_owned());
        let only_kinds = self.only_kinds.iter().cloned();
        let skip_kinds = self.skip_kinds.iter().cloned();
        ObjectSelection {
            names: names.iter().map(|name| object_name(name)).collect(),
            namespace: self.namespace.clone(),
            selector: self.selector.clone().unwrap_or_default(),
            only_kinds: only_kinds.chain(kind(self.only_crds, CRD)).collect(),
            skip_kinds: skip_kinds
                .chain(kind(self.skip_crds && !self.only_crds, CRD))
                .chain(kind(self.skip_secrets, "Secret"))
                .collect(),
        }
    }

    /// Which owners and which of their objects are meant.
    pub(crate) fn owners(&self, owners: OwnerKinds, names: &[String]) -> Selection {
        Selection {
            owners,
            objects: self.objects(names),
        }
    }
}

/// A name in any of its spellings.
fn object_name(text: &str) -> ObjectName {
    match text.parse() {
        Ok(name) => name,
        Err(never) => match never {},
    }
}

impl OwnersWord {
    /// The kinds of owners.
    pub(crate) fn kinds(self) -> OwnerKinds {
        match self {
            Self::Ks => OwnerKinds::Kustomizations,
            Self::Hr => OwnerKinds::Releases,
            Self::All => OwnerKinds::All,
        }
    }
}

// === impl Word ===

impl<W: Copy> Word<W> {
    /// The word and all names; without a word, this one.
    pub(crate) fn split(word: Option<&Self>, names: &[String], otherwise: W) -> (W, Vec<String>) {
        match word {
            Some(Self::What(what)) => (*what, names.to_vec()),
            Some(Self::Name(first)) => {
                let names = std::iter::once(first).chain(names);
                (otherwise, names.cloned().collect())
            }
            None => (otherwise, names.to_vec()),
        }
    }
}

impl<W: ValueEnum + Send + Sync + 'static> ValueParserFactory for Word<W> {
    type Parser = WordParser<W>;

    fn value_parser() -> Self::Parser {
        WordParser(PhantomData)
    }
}

impl<W> Clone for WordParser<W> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

impl<W: ValueEnum + Send + Sync + 'static> TypedValueParser for WordParser<W> {
    type Value = Word<W>;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let text = clap::builder::StringValueParser::new();
        let text = text.parse_ref(command, argument, value)?;
        Ok(match W::from_str(&text, true) {
            Ok(what) => Word::What(what),
            Err(_) => Word::Name(text),
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = W::value_variants().iter();
        Some(Box::new(words.filter_map(W::to_possible_value)))
    }
}
