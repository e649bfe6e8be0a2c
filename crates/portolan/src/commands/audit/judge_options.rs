//! For which releases and by which rules objects are judged, and what is accepted.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_audit::{Baseline, Checker, Day, Rules, Table, Target, TargetWord};
use portolan_object::{KubeVersion, nearest};

use crate::error::CommandError;
use crate::input::Input;

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

impl JudgeOptions {
    /// The checker, and what is odd about its rules.
    pub(super) fn checker(&self) -> Result<(Checker, Vec<String>), CommandError> {
        self.checker_for(Target::default())
    }

    /// The same for a target that a cluster named.
    pub(super) fn checker_for(
        &self,
        target: Target,
    ) -> Result<(Checker, Vec<String>), CommandError> {
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
