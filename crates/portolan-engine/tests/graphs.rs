//! Random graphs, static and discovered, with failing, panicking, slow, flaky and cancelled units: whatever happens,
//! every outcome must be explained by the outcomes next to it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what a test sets up must work"
)]

mod graphs {
    pub(crate) mod check;
    pub(crate) mod random_run;
    pub(crate) mod spec;
}

use graphs::check::check;
use graphs::random_run::{RandomRun, silence_panics_of_units};
use graphs::spec::{Shape, shape};
use proptest::prelude::*;

fn hold(shape: &Shape, threads: usize) {
    silence_panics_of_units();
    let run = RandomRun::run(shape, threads);
    check(shape, &run);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn outcomes_of_acyclic_graphs_are_explained_by_their_neighbours(shape in shape(false)) {
        hold(&shape, 2);
    }

    #[test]
    fn graphs_with_cycles_end_and_name_them(shape in shape(true)) {
        hold(&shape, 2);
    }

    #[test]
    fn the_same_holds_on_a_single_thread(shape in shape(true)) {
        hold(&shape, 1);
    }
}
