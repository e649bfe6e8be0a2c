//! Which Helm version to emulate, where Helm 3 and Helm 4 differ.

/// The Helm whose results are reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Profile {
    /// Helm 3.17.3, the command line of most people and the engine of Flux up to 2.7.
    #[default]
    Helm3,
    /// Helm 4.2, the engine of Flux from 2.8 on: nulls among a chart's defaults are dropped, a values file may have
    /// several documents, `.Chart` is a map, templates may range over whole numbers, documents keep the white space at
    /// their end, webhooks come before unknown kinds, and a failure is told in several lines.
    Helm4,
}
