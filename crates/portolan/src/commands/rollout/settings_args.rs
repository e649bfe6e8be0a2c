//! What counts as worse, and how sure a decision must be, as options.

use portolan_judge::{Corrections, Settings};

use crate::error::CommandError;

/// How sure a decision must be.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Judgement")]
pub(super) struct SettingsArgs {
    /// Largest probability of rolling back a canary that is not worse than tolerated
    #[arg(long, value_name = "RATE", default_value_t = 0.01)]
    false_rollback_rate: f64,

    /// Largest probability of promoting a canary that is harmful
    #[arg(long, value_name = "RATE", default_value_t = 0.05)]
    false_promote_rate: f64,

    /// Odds ratio of bad requests that is still tolerated
    #[arg(long, value_name = "ODDS", default_value_t = 1.25)]
    tolerated_odds: f64,

    /// Odds ratio of bad requests from which on a canary is harmful
    #[arg(long, value_name = "ODDS", default_value_t = 2.0)]
    harmful_odds: f64,
}

impl SettingsArgs {
    /// The settings, once they are found to make a test.
    pub(super) fn settings(&self, is_corrected: bool) -> Result<Settings, CommandError> {
        let settings = Settings {
            false_rollback_rate: self.false_rollback_rate,
            false_promote_rate: self.false_promote_rate,
            tolerated_odds: self.tolerated_odds,
            harmful_odds: self.harmful_odds,
            corrections: is_corrected.then(Corrections::default),
            ..Settings::default()
        };
        settings.check().map_err(CommandError::user)?;
        Ok(settings)
    }
}
