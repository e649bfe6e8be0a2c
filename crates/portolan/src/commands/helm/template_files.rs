//! The files of `portolan helm template --output-dir`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_files::{OutputDir, file_name};
use portolan_helm::{OutputOptions, Rendered};

use crate::error::CommandError;
use crate::printer::Printer;

/// Writes one file for each template, below a directory of the release's name if one is given, and says so as Helm does.
pub(super) fn write_files(
    directory: &Utf8Path,
    release: Option<&str>,
    rendered: &Rendered,
    options: &OutputOptions,
    printer: &Printer,
) -> Result<(), CommandError> {
    let below = release.map(file_name).unwrap_or_default();
    let crds = rendered.crds.iter().filter(|_| options.include_crds);
    let crds = crds.map(|crd| {
        let text = String::from_utf8_lossy(&crd.content);
        ("", crd.path.as_str(), text)
    });
    let hooks = rendered
        .hooks
        .iter()
        .filter(|hook| !(options.no_hooks || options.skip_tests && hook.is_test()))
        .map(|hook| &hook.manifest);
    let manifests = rendered.manifests.iter().chain(hooks).map(|manifest| {
        let text = Cow::Borrowed(manifest.text.as_str());
        (below.as_str(), manifest.source.as_str(), text)
    });
    let mut files: BTreeMap<Utf8PathBuf, String> = BTreeMap::new();
    let mut order = Vec::new();
    for (below, source, text) in crds.chain(manifests) {
        let path = Utf8Path::new(below).join(source);
        let content = files.entry(path.clone()).or_default();
        let _ = writeln!(content, "---\n# Source: {source}\n{text}");
        order.push(path);
    }
    let output = OutputDir::create(directory)?;
    for (path, content) in &files {
        output.write(path, content.as_bytes())?;
    }
    // Helm says so for each document.
    for path in order {
        printer.data(format!("wrote {}\n", directory.join(path)))?;
    }
    Ok(())
}
