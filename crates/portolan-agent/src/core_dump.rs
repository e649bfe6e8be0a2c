//! No memory of a process that holds secrets is written to a disk when it dies.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Forbids core dumps of this process, and that others of its user look into its memory. Programs that it starts are free
/// again. Best effort: a kernel that refuses leaves everything as it was.
pub fn forbid_core_dumps() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_forbids_core_dumps_is_not_dumpable() {
        forbid_core_dumps();
        let now = rustix::process::dumpable_behavior().expect("known");
        assert_eq!(now, DumpableBehavior::NotDumpable);
    }
}
