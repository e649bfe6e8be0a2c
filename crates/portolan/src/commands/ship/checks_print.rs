//! What tests and verifications came to, for people.

use std::fmt::Write as _;

use portolan_object::counted;
use portolan_ship::{CheckResult, CheckStatus};

use crate::table::Tone;

/// What passed first, then what did not, then how many of them passed.
pub(super) fn checks_text(checks: &[CheckResult], what: &str, styled: bool) -> String {
    if checks.is_empty() {
        return String::new();
    }
    let (good, bad): (Vec<_>, Vec<_>) = checks.iter().partition(|check| check.is_good());
    let mut text: String = good
        .iter()
        .chain(&bad)
        .map(|check| line(check, styled))
        .collect();
    let _ = writeln!(
        text,
        "{} of {} passed",
        good.len(),
        counted(checks.len(), what)
    );
    text
}

fn line(check: &CheckResult, styled: bool) -> String {
    let name = match &check.artifact {
        Some(artifact) => format!("{} {artifact}", check.name),
        None => check.name.clone(),
    };
    let name = Tone::Name.paint(&name, styled);
    let seconds = check.duration_ms as f64 / 1000.0;
    let (good, bad) = (Tone::Good.paint("✓", styled), Tone::Bad.paint("✗", styled));
    match check.status {
        CheckStatus::Passed => format!("{good} {name}  passed in {seconds:.1} s\n"),
        CheckStatus::Cached => format!("{good} {name}  passed before\n"),
        CheckStatus::Failed => {
            let error = check.error.as_deref().unwrap_or_default();
            let error = error.replace('\n', "\n  ");
            format!("{bad} {name}  failed after {seconds:.1} s\n  {error}\n")
        }
        CheckStatus::Skipped => format!("- {name}  skipped: {}\n", check.because.join(", ")),
        CheckStatus::Cancelled => format!("- {name}  cancelled\n"),
    }
}
