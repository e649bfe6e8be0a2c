//! What a version of Flux does differently from the others.

/// The behaviour of a version of Flux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// A variable that nobody sets is an error (since Flux 2.9).
    pub strict_substitution: bool,
    /// Charts are rendered as Helm 4 does, hooks go through post-renderers (since Flux 2.8).
    pub helm4: bool,
}

impl Profile {
    /// The newest Flux known.
    pub const NEWEST: Self = Self {
        strict_substitution: true,
        helm4: true,
    };

    /// The Helm that it renders charts with.
    pub(crate) fn helm(self) -> portolan_helm::Profile {
        if self.helm4 {
            portolan_helm::Profile::Helm4
        } else {
            portolan_helm::Profile::Helm3
        }
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::NEWEST
    }
}
