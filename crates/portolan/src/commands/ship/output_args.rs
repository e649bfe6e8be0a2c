//! In which format a command of `portolan ship` answers.

/// The option that chooses it.
#[derive(Debug, clap::Args)]
pub(super) struct OutputArgs {
    /// Output format
    #[arg(
        id = "output",
        short = 'o',
        long = "output",
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    pub(super) format: Format,
}

/// Output format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// Lines for people
    Text,
    /// One JSON object
    Json,
}
