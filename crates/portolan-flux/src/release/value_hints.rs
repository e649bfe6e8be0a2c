//! What the values of a release may make its chart print or look up, found in their texts.

use portolan_helm::values::Tree;

use crate::release::loaded_chart::{DEFINITION, FLUX_GROUPS};
use crate::release::looked_up::LookedUp;
use crate::release::release_unit::mentions;

/// What has to be known about the values of every release before the first one is rendered.
#[derive(Debug, Clone, Default)]
pub(crate) struct ValueHints {
    /// Whether they name an API group of Flux.
    pub(crate) mention_flux: bool,
    /// Whether they name the kind that defines kinds.
    pub(crate) mention_definitions: bool,
    /// What templates in them look up.
    pub(crate) looked_up: LookedUp,
}

impl ValueHints {
    pub(crate) fn of(values: &Tree) -> Self {
        let mut looked_up = LookedUp::default();
        looked_up.read_values(values);
        Self {
            mention_flux: mentions(values, FLUX_GROUPS),
            mention_definitions: mentions(values, DEFINITION),
            looked_up,
        }
    }
}
