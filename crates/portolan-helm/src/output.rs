//! The text that `helm template` prints.

use std::fmt::Write;

use crate::documents::split;
use crate::profile::Profile;
use crate::render::Rendered;
use portolan_go::wildcard;

/// Which parts of a rendered chart are printed.
#[derive(Debug, Clone, Default)]
pub struct OutputOptions {
    /// The files of `crds/` first.
    pub include_crds: bool,
    /// No hooks.
    pub no_hooks: bool,
    /// No hooks that are tests.
    pub skip_tests: bool,
    /// Only documents of these templates, patterns allowed, in this order.
    pub show_only: Vec<String>,
}

/// A template that was asked for printed nothing, or is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("could not find template {0} in chart")]
pub struct NoSuchTemplate(pub String);

impl Rendered {
    /// Prints the documents as `helm template` does.
    pub fn to_text(&self, options: &OutputOptions) -> Result<String, NoSuchTemplate> {
        let mut text = String::new();
        if options.include_crds {
            for crd in &self.crds {
                document(&mut text, &crd.path, &String::from_utf8_lossy(&crd.content));
            }
        }
        for manifest in &self.manifests {
            document(&mut text, &manifest.source, &manifest.text);
        }
        trim(&mut text);
        text.push('\n');
        if !options.no_hooks {
            let hooks = self.hooks.iter();
            for hook in hooks.filter(|hook| !(options.skip_tests && hook.is_test())) {
                document(&mut text, &hook.manifest.source, &hook.manifest.text);
            }
        }
        if options.show_only.is_empty() {
            Ok(text)
        } else {
            show_only(&text, &options.show_only, self.profile)
        }
    }
}

fn document(text: &mut String, source: &str, content: &str) {
    text.reserve(source.len() + content.len() + 20);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "---\n# Source: {source}\n{content}");
}

/// Removes white space at both ends in place.
fn trim(text: &mut String) {
    text.truncate(text.trim_end().len());
    let blank = text.len() - text.trim_start().len();
    text.drain(..blank);
}

/// Finds documents by the `# Source:` line in what was printed, as Helm does.
fn show_only(text: &str, patterns: &[String], profile: Profile) -> Result<String, NoSuchTemplate> {
    let documents = split(text, profile);
    let mut shown = String::new();
    for pattern in patterns {
        let before = shown.len();
        for document in &documents {
            let fits = |path| wildcard::matches(pattern, path).unwrap_or(false);
            if source_in_chart(document).is_some_and(fits) {
                let _ = writeln!(shown, "---\n{document}");
            }
        }
        if shown.len() == before {
            return Err(NoSuchTemplate(pattern.clone()));
        }
    }
    Ok(shown)
}

/// The path behind `# Source: CHART/`.
fn source_in_chart(document: &str) -> Option<&str> {
    document
        .match_indices("# Source: ")
        .find_map(|(at, marker)| {
            let rest = document.get(at + marker.len()..)?;
            let (chart, path) = rest.split_once('/')?;
            let path = path.lines().next()?;
            (!chart.is_empty() && !path.is_empty()).then_some(path)
        })
}
