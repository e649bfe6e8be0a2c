//! The name of a release that is rendered and not installed.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::engine::{TemplateError, name_from_template};

/// The name of a release that nobody named, as Helm has it.
const UNNAMED: &str = "release-name";

/// How the name of a release is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseName<'a> {
    /// By the user.
    Given(&'a str),
    /// By a template, as with `--name-template`.
    Template(&'a str),
    /// From the chart's path and the time, as with `--generate-name`.
    Generated {
        /// The path or address of the chart.
        chart: &'a str,
        /// The time.
        now: SystemTime,
    },
    /// By nobody.
    Unnamed,
}

impl ReleaseName<'_> {
    /// The name.
    ///
    /// # Errors
    /// When the template fails.
    pub fn resolve(self) -> Result<String, TemplateError> {
        match self {
            Self::Given(name) => Ok(name.to_owned()),
            Self::Template(template) => name_from_template(template),
            Self::Generated { chart, now } => Ok(generated(chart, now)),
            Self::Unnamed => Ok(UNNAMED.to_owned()),
        }
    }
}

/// The name of the chart's file up to its first point, and the seconds since 1970.
fn generated(chart: &str, now: SystemTime) -> String {
    let file = chart.trim_end_matches('/').rsplit('/').next();
    let base = file.and_then(|file| file.split('.').next());
    let base = base.filter(|base| !base.is_empty()).unwrap_or("chart");
    let now = now.duration_since(UNIX_EPOCH);
    let seconds = now.map_or(0, |since| since.as_secs());
    format!("{base}-{seconds}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_generated_name_has_the_charts_name_and_the_seconds() {
        let now = UNIX_EPOCH + Duration::from_secs(7);
        let name = |chart| ReleaseName::Generated { chart, now }.resolve().ok();
        assert_eq!(name("charts/web-1.2.3.tgz").as_deref(), Some("web-1-7"));
        assert_eq!(name("./charts/web/").as_deref(), Some("web-7"));
        assert_eq!(name("..").as_deref(), Some("chart-7"));
    }

    #[test]
    fn a_name_is_given_made_or_the_usual_one() {
        let name = |name: ReleaseName<'_>| name.resolve().ok();
        assert_eq!(name(ReleaseName::Given("web")).as_deref(), Some("web"));
        let template = ReleaseName::Template("{{ upper \"a\" }}");
        assert_eq!(name(template).as_deref(), Some("A"));
        assert_eq!(name(ReleaseName::Unnamed).as_deref(), Some("release-name"));
        assert_eq!(name(ReleaseName::Template("{{")), None);
    }
}
