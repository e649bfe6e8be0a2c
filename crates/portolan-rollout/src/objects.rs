//! The objects that an application is made of.

use crate::slot::Slot;

/// Returns the selector of a slot's pods, as `kubectl` writes it.
pub fn selector_text(name: &str, slot: Slot) -> String {
    format!("portolan.dev/rollout={name},portolan.dev/slot={slot}")
}
