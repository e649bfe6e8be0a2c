//! Values of releases that no template of their chart reads: mistyped keys, keys of another version of the chart.
//!
//! Only certain cases are reported; see [`portolan_helm::never_read`].

use portolan_helm::NeverRead;
use portolan_object::{Finding, Object, Owner, OwnerKind, Place, similar};
use portolan_vfs::Vfs;
use portolan_yaml::{Dialect, Entry, Node, Text};

use crate::problem::rule::UNREAD_VALUE;
use crate::problem::written::{written_here, written_in_text};
use crate::render::{RenderedRelease, Rendering};
use crate::walk::index::Index;

/// Returns a finding for each value that no template reads, with the object that defines its release; `files` are
/// those that were rendered.
pub fn unread_values<'a>(rendering: &'a Rendering, files: &dyn Vfs) -> Vec<(&'a Object, Finding)> {
    let index = &rendering.walk.index;
    let mut findings = Vec::new();
    for release in rendering.releases.values() {
        for value in never_read(release) {
            let mut finding = finding(&value, release, index, files);
            let texts = finding.messages.iter_mut().chain(&mut finding.hints);
            texts.for_each(|text| index.hide_secrets(text));
            findings.push((&release.definition, finding));
        }
    }
    findings
}

/// The values of a release that was rendered.
fn never_read(release: &RenderedRelease) -> Vec<NeverRead> {
    let (Some(chart), Some(rendered_for)) = (&release.chart, &release.rendered_for) else {
        return Vec::new();
    };
    if release.released.is_none() {
        return Vec::new();
    }
    let profile = rendered_for.profile.helm();
    portolan_helm::never_read(&chart.chart(), &release.composed.values, profile).unwrap_or_default()
}

fn finding(
    value: &NeverRead,
    release: &RenderedRelease,
    index: &Index,
    files: &dyn Vfs,
) -> Finding {
    let chart = release.chart.as_ref();
    let chart = chart.map(|chart| format!("chart {} {}", chart.name(), chart.version()));
    let path = value.path.join(".");
    let message = format!(
        "no template of {} reads value `{path}`",
        chart.unwrap_or_default()
    );
    let (last, above) = value.path.split_last().unzip();
    let last = last.map(Text::as_str).unwrap_or_default();
    let near = similar(last, value.known_keys.iter(), |key| key.as_str());
    let hint = match near {
        Some(near) => {
            let keys = above.unwrap_or_default().iter().chain([near]);
            let keys: Vec<&str> = keys.map(Text::as_str).collect();
            format!("did you mean `{}`?", keys.join("."))
        }
        None => "take it away, or look into the chart's values for its right name".to_owned(),
    };
    let place = in_release(&value.path, &release.definition, files)
        .or_else(|| in_references(&value.path, release, index, files));
    let declared = || release.definition.place();
    let id = release.spec.as_ref().map(|spec| spec.id.clone());
    let owner = id.map(|id| Owner::new(OwnerKind::Release, id.namespace, id.name));
    Finding {
        owner: owner.ok(),
        field: Some(format!("spec.values.{path}")),
        place: place.or_else(declared),
        hints: vec![hint],
        ..Finding::new(&UNREAD_VALUE, message)
    }
}

/// Where the key is written in the release itself.
fn in_release(path: &[Text], definition: &Object, files: &dyn Vfs) -> Option<Place> {
    let values = definition.node().at_path(&["spec", "values"])?;
    let entry = follow(values, path)?;
    written_here(definition, entry.key.at, &entry.key.scalar.text, files)
}

/// Where the key is written in what the release refers to.
fn in_references(
    path: &[Text],
    release: &RenderedRelease,
    index: &Index,
    files: &dyn Vfs,
) -> Option<Place> {
    let spec = release.spec.as_ref().ok()?;
    let mut references = spec.values_from.iter().rev();
    references.find_map(|reference| {
        if reference.target_path.is_some() {
            return None;
        }
        let id = reference.data_id(&spec.id.namespace);
        let data = index.data(&id)?;
        let text = std::str::from_utf8(data.get(reference.key.as_str())?).ok()?;
        let values = portolan_yaml::parse_one(text.to_owned(), Dialect::Helm).ok()?;
        let entry = follow(&values, path)?;
        let (_, object) = index.named("", reference.kind.as_str(), &id.1)?;
        written_in_text(object, &reference.key, text, entry.key.at, files)
    })
}

fn follow<'a>(values: &'a Node, path: &[Text]) -> Option<&'a Entry> {
    let (last, above) = path.split_last()?;
    let table = above.iter().try_fold(values, |node, key| node.get(key))?;
    let mut entries = table.as_map()?.iter();
    entries.find(|entry| entry.key.scalar.text == *last)
}
