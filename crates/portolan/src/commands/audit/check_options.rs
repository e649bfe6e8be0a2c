//! The options of every audit: target releases, rules, accepted findings, exit code.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_audit::{
    Baseline, Checker, Day, Finding, Level, Report, Rules, Table, Target, TargetWord,
};
use portolan_object::{KubeVersion, nearest};

use super::print::OutputFormat;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::input::Input;

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

/// For which releases, by which rules.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct JudgeOptions {
    /// The release of Kubernetes to check for; or of an add-on, as `flux=2.8`; may be repeated
    ///
    /// Default: the release that the cluster runs; for a repository, the version found in it; else
    /// 1.36. APIs that an add-on removed are reported as removed only if its release is given here.
    #[arg(long, value_name = "[COMPONENT=]RELEASE", help_heading = "Checks")]
    target: Vec<TargetWord>,

    /// The release that runs now; shows what stops working at each release up to the target
    #[arg(long, value_name = "RELEASE", help_heading = "Checks")]
    from: Option<KubeVersion>,

    /// How many releases after the target to look ahead
    #[arg(long, value_name = "COUNT", default_value_t = portolan_audit::LOOK_AHEAD, help_heading = "Checks")]
    look_ahead: u32,

    /// A file with rules that add to the table or override it; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Checks")]
    rules: Vec<Utf8PathBuf>,

    /// A file with findings that are accepted, each with a reason and a last day
    #[arg(long, value_name = "FILE", help_heading = "Checks")]
    baseline: Option<Utf8PathBuf>,
}

/// `removed=10`
#[derive(Debug, Clone, Copy)]
struct ExitCodeWord {
    level: Level,
    code: u8,
}

impl JudgeOptions {
    /// The checker, and what is odd about its rules.
    pub(super) fn checker(&self) -> Result<(Checker, Vec<String>), CommandError> {
        self.checker_for(Target::default())
    }

    /// The same for a target that a cluster named.
    fn checker_for(&self, target: Target) -> Result<(Checker, Vec<String>), CommandError> {
        let (mut rows, mut warnings) = (Vec::new(), Vec::new());
        for file in &self.rules {
            let text = Input::read(file)?.bytes;
            let rules = Rules::read(&text).map_err(|error| in_file(file, error))?;
            let (added, expired) = rules.rows(today());
            rows.extend(added);
            warnings.extend(expired);
        }
        let checker = Checker {
            table: Table::with(rows),
            target: self.target(target),
        };
        self.check_target(&checker)?;
        Ok((checker, warnings))
    }

    /// A component that nobody knows, or a way that leads back, would silently mean nothing.
    fn check_target(&self, checker: &Checker) -> Result<(), CommandError> {
        let components = checker.table.components();
        let name = |word| match word {
            TargetWord::Kubernetes(_) => None,
            TargetWord::Component(name, _) => Some(name),
        };
        let unknown = |name: &String| !components.contains(name.as_str());
        let mut names = self.target.iter().cloned().filter_map(name);
        if let Some(name) = names.find(unknown) {
            let error = format!("--target: the table knows no component `{name}`");
            return Err(not_known(error, &name, &components));
        }
        let to = checker.target.kubernetes;
        match self.from {
            Some(from) if from > to => Err(CommandError::usage(format!(
                "--from {from} is newer than the target {to}"
            ))),
            _ => Ok(()),
        }
    }

    /// The target that a cluster names, or what counts more: --target.
    pub(super) fn target(&self, mut target: Target) -> Target {
        for word in &self.target {
            target.set(word.clone());
        }
        target.from = self.from;
        target.look_ahead = self.look_ahead;
        target
    }

    /// What is accepted, when a file says so.
    pub(super) fn accepted(&self) -> Result<Option<Baseline>, CommandError> {
        let Some(file) = &self.baseline else {
            return Ok(None);
        };
        let text = Input::read(file)?.bytes;
        let baseline = Baseline::read(&text).map_err(|error| in_file(file, error))?;
        Ok(Some(baseline))
    }
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

/// A name that is not there, and the one that may be meant.
pub(super) fn not_known(error: String, name: &str, known: &BTreeSet<&str>) -> CommandError {
    let near = nearest(&[name], known.iter(), |known| known);
    let hint = match near {
        Some(near) if known.len() > 20 => format!("did you mean `{near}`?"),
        _ => {
            let names: Vec<&str> = known.iter().copied().collect();
            format!("there are {}", names.join(", "))
        }
    };
    CommandError::usage(error).hint(hint)
}

fn in_file(file: &Utf8Path, error: portolan_audit::SettingsError) -> CommandError {
    CommandError::user(anyhow::Error::new(error).context(format!("cannot use `{file}`")))
}

pub(super) fn today() -> Day {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    Day::of_unix_seconds(now.map_or(0, |since| since.as_secs()))
}
