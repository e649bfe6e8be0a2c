//! What a caller can choose about a build.

use portolan_budget::Budget;
use portolan_yaml::Node;

use crate::generate::chart::ChartRenderer;
use crate::load::deprecation::Deprecation;
use crate::load::fetch::Fetch;

/// Which files a kustomization may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoadRestrictor {
    /// Only those in or below its directory; other directories can still be bases.
    #[default]
    RootOnly,
    /// All of them.
    None,
}

/// The order of the output, unless the kustomization sets one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reorder {
    /// By kind, as the command line prints.
    #[default]
    Legacy,
    /// As accumulated, as Flux applies.
    None,
}

/// The choices of one build.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Which files a kustomization may read.
    pub load_restrictor: LoadRestrictor,
    /// The order of the output.
    pub reorder: Reorder,
    /// Renders `helmCharts`; without it, they are refused.
    pub charts: Option<&'a dyn ChartRenderer>,
    /// Fetches remote bases and files; without it, they are refused.
    pub fetch: Option<&'a dyn Fetch>,
    /// Hears of deprecated fields, in every kustomization of the build, when it is read.
    pub warn: Option<&'a dyn Fn(Deprecation)>,
    /// Stands for the kustomization file of the directory that is built, which need not exist then. Whoever gives it
    /// has decoded it before: fields that are not known are passed over.
    pub kustomization: Option<&'a Node>,
    /// What the build may cost; without it, the default limits count.
    pub budget: Option<&'a Budget>,
}
