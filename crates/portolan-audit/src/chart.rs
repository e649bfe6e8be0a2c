//! Charts: rendered for the target with their own default values, then checked.

use std::path::Path;
use std::sync::Arc;

use camino::Utf8Path;
use portolan_helm::{
    Capabilities, Chart, Package, Release, Rendered, ReportedVersion, TemplateInput, template,
};
use portolan_vfs::Disk;
use portolan_yaml::Position;

use crate::checker::{Checker, Site};
use crate::finding::{Evidence, Finding};
use crate::lifecycle::{Lifecycle, Stage};
use crate::manifest::{Checked, unreadable};
use crate::release::Release as KubeRelease;

/// Renders a chart directory or archive and checks what it gives.
pub(crate) fn check(checker: &Checker, path: &Path) -> Checked {
    match render(checker, path) {
        Ok((_, None)) => Checked::default(),
        Ok((chart, Some(rendered))) => check_rendered(checker, path, &chart, &rendered),
        Err(reason) => {
            let site = Site {
                file: Some(path.join("Chart.yaml").to_string_lossy().into_owned()),
                ..Site::default()
            };
            let message = format!("the chart cannot be rendered: {reason}");
            Checked {
                findings: vec![unreadable(&site, Position::default(), &message)],
                objects: 0,
            }
        }
    }
}

/// The chart and what it renders to; a library chart renders to nothing.
fn render(checker: &Checker, path: &Path) -> Result<(Chart, Option<Rendered>), String> {
    let path = Utf8Path::from_path(path).ok_or("its path is not UTF-8")?;
    let chart = if path.is_dir() {
        let disk = Disk::open(path).map_err(|error| error.to_string())?;
        Chart::load(&disk, Utf8Path::new("/")).map_err(|error| error.to_string())?
    } else {
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        Chart::new(Package::from_archive(&bytes).map_err(|error| error.to_string())?)
    };
    if chart.package().metadata.is_library() {
        return Ok((chart, None));
    }
    // The name has to be legal, nothing more.
    let mut input = TemplateInput::new(Release::new("release-name", "default"));
    input.capabilities = Arc::new(capabilities(checker));
    let rendered = template(&chart, &input).map_err(|error| error.to_string())?;
    Ok((chart, Some(rendered)))
}

/// What the target serves by default, as templates ask for it.
fn capabilities(checker: &Checker) -> Capabilities {
    let release = checker.target.release();
    let mut names: Vec<String> = checker
        .table
        .rows()
        .filter(|row| row.is_kubernetes() && is_on(row, release))
        .flat_map(|row| {
            let group_version = row.api.api_version();
            let kind = format!("{group_version}/{}", row.api.kind);
            [group_version, kind]
        })
        .collect();
    names.sort();
    names.dedup();
    Capabilities {
        kube_version: ReportedVersion::first_of(checker.target.kubernetes),
        api_versions: names,
    }
}

/// Alpha versions are off, and so are beta versions that came with 1.24 or later.
fn is_on(row: &Lifecycle, release: KubeRelease) -> bool {
    let version = &row.api.version;
    let late_beta = version.contains("beta") && row.introduced >= Some(KubeRelease::new(1, 24, 0));
    matches!(row.stage(release), Stage::Live | Stage::Deprecated)
        && !version.contains("alpha")
        && !late_beta
}

fn check_rendered(checker: &Checker, path: &Path, chart: &Chart, rendered: &Rendered) -> Checked {
    let mut checked = Checked::default();
    let hooks = rendered.hooks.iter().map(|hook| &hook.manifest);
    for manifest in rendered.manifests.iter().chain(hooks) {
        let mut part = checker.check_text(
            manifest.text.as_bytes(),
            &site(chart, path, &manifest.source),
        );
        for finding in &mut part.findings {
            point_to_template(finding, path, chart, &manifest.source);
        }
        checked.add(part);
    }
    for definition in &rendered.crds {
        let mut site = site(chart, path, &definition.path);
        site.file = Some(path.join(&definition.path).to_string_lossy().into_owned());
        checked.add(checker.check_text(&definition.content, &site));
    }
    checked
}

fn site(chart: &Chart, path: &Path, source: &str) -> Site {
    let metadata = &chart.package().metadata;
    Site {
        file: Some(template_path(path, source)),
        evidence: vec![Evidence::Chart {
            chart: format!("{} {}", metadata.name, metadata.version),
            template: source.to_owned(),
        }],
        namespace: String::new(),
    }
}

/// A template's path: its name begins with the chart's, where the directory may have another.
fn template_path(path: &Path, source: &str) -> String {
    let inner = source.split_once('/').map_or(source, |(_, inner)| inner);
    path.join(inner).to_string_lossy().into_owned()
}

/// A rendered line says nothing to a reader of the template: find the one that writes the API version.
fn point_to_template(finding: &mut Finding, path: &Path, chart: &Chart, source: &str) {
    let line = template_text(path, chart, source)
        .and_then(|text| line_of(&text, &finding.subject.api_version));
    finding.line = line;
    finding.column = line.map(|_| 1);
    finding
        .evidence
        .retain(|evidence| !matches!(evidence, Evidence::File { .. }));
}

fn template_text(path: &Path, chart: &Chart, source: &str) -> Option<String> {
    let inner = source.split_once('/')?.1;
    let own = chart
        .package()
        .templates
        .iter()
        .find(|file| file.name == inner);
    match own {
        Some(file) => Some(String::from_utf8_lossy(&file.content).into_owned()),
        None => std::fs::read_to_string(path.join(inner)).ok(),
    }
}

fn line_of(text: &str, api_version: &str) -> Option<u32> {
    let says = |line: &str, word: &str| {
        line.trim_start().starts_with("apiVersion:") && line.contains(word)
    };
    let find = |word: &str| text.lines().position(|line| says(line, word));
    find(api_version)
        .or_else(|| find(""))
        .map(|index| index as u32 + 1)
}
