//! In which format a command of `portolan rollout` answers.

/// The option that chooses it.
#[derive(Debug, clap::Args)]
pub(super) struct OutputArgs {
    /// Output format
    #[arg(
        id = "output",
        short = 'o',
        long = "output",
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    pub(super) format: Format,
}

/// Output format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(super) enum Format {
    /// Columns
    #[default]
    Table,
    /// One JSON object
    Json,
}
