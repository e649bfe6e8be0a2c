//! Many pretended releases, to see how often a rule decides wrongly before anybody trusts it.
//!
//! ```text
//! Scenario + seed ──▶ requests of each minute ──▶ Rule ──▶ Ending ──▶ Summary over all runs
//! ```
//!
//! The weight of the canary goes from 5 % to 50 % by 5 % a minute and stays there; a run that has not ended after an hour
//! is held. The same seed gives the same summary.

mod rule;
mod run;
mod scenario;
mod summary;

pub use rule::Rule;
pub use scenario::{BadScenario, Incident, Scenario, UnknownScenario};
pub use summary::{Summary, simulate};
