//! The options of every audit: how objects are judged, and how the command ends.

use portolan_audit::{Checker, Finding, Level, Report, Target};

use super::judge_options::{JudgeOptions, today};
use super::print::OutputFormat;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// How objects are judged, what is printed of it, and how the command ends.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckOptions {
    #[command(flatten)]
    judge: JudgeOptions,

    /// Lowest level that makes the exit code 1
    ///
    /// In order of severity: deprecated, field, reference, removed-next, unknown-api, removed, not-yet-served,
    /// stored-version, unparsed.
    #[arg(
        long,
        value_name = "LEVEL",
        default_value = "removed",
        help_heading = "Checks"
    )]
    fail_on: Level,

    /// The exit code for a level, in place of what --fail-on says; may be repeated
    #[arg(long, value_name = "LEVEL=CODE", help_heading = "Checks")]
    exit_code: Vec<ExitCodeWord>,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    pub(super) output: OutputFormat,
}

/// `removed=10`
#[derive(Debug, Clone, Copy)]
struct ExitCodeWord {
    level: Level,
    code: u8,
}

impl CheckOptions {
    /// The checker, and what is odd about its rules.
    pub(super) fn checker(&self) -> Result<(Checker, Vec<String>), CommandError> {
        self.judge.checker()
    }

    /// The same for a target that a cluster named; --target still counts more.
    pub(super) fn checker_for(
        &self,
        target: Target,
    ) -> Result<(Checker, Vec<String>), CommandError> {
        self.judge.checker_for(target)
    }

    /// Marks what the baseline accepts; gives what is odd about it.
    pub(super) fn accept(&self, findings: &mut [Finding]) -> Result<Vec<String>, CommandError> {
        let baseline = self.judge.accepted()?;
        Ok(baseline.map_or_else(Vec::new, |baseline| baseline.apply(findings, today())))
    }

    /// How the command ends: the largest code that a level asks for, else 1 from --fail-on up.
    pub(super) fn status(&self, report: &Report) -> ExitStatus {
        let code = |level: Level| {
            let word = self.exit_code.iter().rev().find(|word| word.level == level);
            word.map_or(u8::from(level >= self.fail_on), |word| word.code)
        };
        let worst = report
            .open()
            .map(|finding| code(finding.level))
            .max()
            .unwrap_or(0);
        match worst {
            0 => ExitStatus::Clean,
            1 => ExitStatus::Findings,
            code => ExitStatus::Chosen(code),
        }
    }
}

impl std::str::FromStr for ExitCodeWord {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (level, code) = text
            .split_once('=')
            .ok_or("it is not of the form LEVEL=CODE")?;
        Ok(Self {
            level: level
                .parse()
                .map_err(|error: portolan_audit::BadLevel| error.to_string())?,
            code: code
                .parse()
                .map_err(|_| format!("`{code}` is no exit code"))?,
        })
    }
}
