//! The words that every format shares: counts, titles, what happens to an object.

use portolan_object::{Finding, ImageRef, ObjectId, OwnerKind, counted};
use portolan_yaml::Text;

use super::line::clean;
use crate::failure::{Effect, FailedSide, Failure, InputChange};
use crate::image::ImageChange;
use crate::pairing::stable_name;
use crate::report::{Change, ChangeKind, Report};
use crate::restart::Restart;

/// `3 objects change, 1 added, 1 removed · 2 images · 1 restart · 1 danger · 1 change not rendered`
pub(super) fn headline(report: &Report) -> String {
    let counts = report.counts();
    if report.is_empty() {
        return "no differences".to_owned();
    }
    let mut objects = Vec::new();
    if counts.changed > 0 {
        let verb = if counts.changed == 1 {
            "changes"
        } else {
            "change"
        };
        objects.push(format!("{} {verb}", counted(counts.changed, "object")));
    }
    if counts.added > 0 {
        objects.push(format!("{} added", counts.added));
    }
    if counts.removed > 0 {
        objects.push(format!("{} removed", counts.removed));
    }
    let mut parts = Vec::new();
    if !objects.is_empty() {
        parts.push(objects.join(", "));
    }
    for (count, word) in [
        (counts.images, "image"),
        (counts.restarts, "restart"),
        (counts.dangers, "danger"),
    ] {
        if count > 0 {
            parts.push(counted(count, word));
        }
    }
    if counts.not_rendered > 0 {
        parts.push(format!(
            "{} not rendered",
            counted(counts.not_rendered, "change")
        ));
    }
    parts.join(" · ")
}

/// What was not compared or is not shown, a sentence each.
pub(super) fn left_out(report: &Report) -> impl Iterator<Item = String> {
    equal_inputs(report).into_iter().chain(stripped(report))
}

/// `41 releases have equal inputs and were not rendered`; nothing when there are none.
fn equal_inputs(report: &Report) -> Option<String> {
    let mut failures = report.failures.iter();
    let is_other = |failure: &Failure| failure.owner.kind != OwnerKind::Release;
    let has_others = failures.any(|failure| !failure.is_change() && is_other(failure));
    let (one, many) = if has_others {
        ("release or Kustomization", "releases or Kustomizations")
    } else {
        ("release", "releases")
    };
    match report.equal_inputs {
        0 => None,
        1 => Some(format!("1 {one} has equal inputs and was not rendered")),
        count => Some(format!(
            "{count} {many} have equal inputs and were not rendered"
        )),
    }
}

/// `2 objects differ only in labels and annotations that are left out; --no-strip shows them`; nothing when there are
/// none.
fn stripped(report: &Report) -> Option<String> {
    let verb = match report.stripped {
        0 => return None,
        1 => "differs",
        _ => "differ",
    };
    Some(format!(
        "{} {verb} only in labels and annotations that are left out; --no-strip shows them",
        counted(report.stripped, "object")
    ))
}

/// What was not looked at, a line each: `apps/flux.yaml:3: the FluxInstance syncs …`
pub(super) fn not_covered(report: &Report) -> impl Iterator<Item = String> {
    report.not_covered.iter().map(|finding| {
        let message = finding.message();
        match &finding.place {
            Some(place) => format!("{}: {message}", place.to_string().trim_start_matches('/')),
            None => message,
        }
    })
}

/// `production: HelmRelease apps/podinfo`
pub(super) fn failed(failure: &Failure) -> String {
    let cluster = match failure.owner.cluster.as_str() {
        "" => String::new(),
        cluster => format!("{cluster}: "),
    };
    clean(&format!("{cluster}{}", failure.owner))
}

/// `changed, not rendered: chart podinfo 6.5.0 → 6.6.1 cannot be fetched`
pub(super) fn failure(failure: &Failure) -> String {
    let side = match failure.side {
        FailedSide::Before => " before",
        FailedSide::After | FailedSide::Both => "",
    };
    let lead = match failure.effect {
        Effect::None => "not rendered, but its inputs are equal".to_owned(),
        effect => format!("{}, not rendered{side}", effect.as_str()),
    };
    clean(&format!("{lead}: {}", failure.reason))
}

/// What of an input is shown on one side.
pub(super) fn input_value(value: Option<&Text>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| clean(value))
}

/// `chart version 6.5.0 → 6.6.1`, `values password (hidden)`
pub(super) fn input(change: &InputChange) -> String {
    let name = clean(&change.input);
    match (&change.from, &change.to) {
        _ if change.hidden => format!("{name} (hidden)"),
        (None, None) => name,
        (from, to) => format!(
            "{name} {} → {}",
            input_value(from.as_ref()),
            input_value(to.as_ref())
        ),
    }
}

/// The most inputs of one failure that are listed.
pub(super) const MAX_INPUTS: usize = 20;

/// The inputs that differ, and how many more.
pub(super) fn inputs(failure: &Failure) -> Vec<String> {
    let mut told: Vec<String> = failure.inputs.iter().take(MAX_INPUTS).map(input).collect();
    match failure.inputs.len().saturating_sub(MAX_INPUTS) {
        0 => {}
        more => told.push(format!("and {more} more")),
    }
    told
}

/// `Deployment apps/podinfo`; a generated object goes without its hash, and odd API versions are named.
pub(super) fn object(id: &ObjectId) -> String {
    let name = stable_name(&id.name);
    if id.namespace.is_empty() {
        clean(&format!("{} {name}", id.gvk.kind))
    } else {
        clean(&format!("{} {}/{name}", id.gvk.kind, id.namespace))
    }
}

/// The object of a danger, as [`object`] names it.
pub(super) fn subject(danger: &Finding) -> String {
    danger.object.as_ref().map(object).unwrap_or_default()
}

/// `production: HelmRelease apps/podinfo → Deployment apps/podinfo`
pub(super) fn title(change: &Change) -> String {
    let mut title = String::new();
    if !change.owner.cluster.is_empty() {
        title = format!("{}: ", change.owner.cluster);
    }
    if change.owner.kind != OwnerKind::Kustomization {
        title = format!("{title}{} → ", change.owner);
    }
    clean(&format!("{title}{}", object(&change.id)))
}

/// `changed, rolls 3 pods`, `removed: prune deletes 14 objects`, `changed (values hidden)`
pub(super) fn fate(report: &Report, change: &Change) -> String {
    let mut fate = change.kind.as_str().to_owned();
    if change.kind == ChangeKind::Added {
        let api_version = change.id.gvk.api_version();
        fate = format!("added ({api_version})");
    }
    if let Some(restart) = report.restart(change) {
        fate = format!("{fate}, {}", rolls(restart));
    }
    let effect = report
        .dangers_of(change)
        .find(|danger| is_told_in_fate(danger));
    if let Some(danger) = effect {
        fate = format!("{fate}: {}", danger.message());
    }
    if change.hides_values() {
        fate.push_str(" (values hidden)");
    }
    fate
}

/// `rolls 3 pods`, `starts a canary`
pub(super) fn rolls(restart: &Restart) -> String {
    match restart.pods {
        _ if restart.is_canary() => "starts a canary".to_owned(),
        Some(1) => "rolls 1 pod".to_owned(),
        Some(pods) => format!("rolls {pods} pods"),
        None => "rolls its pods".to_owned(),
    }
}

/// Why pods are replaced although nothing in the workload is news.
pub(super) fn followed(change: &Change) -> Option<String> {
    let mut titles: Vec<&str> = change
        .fields
        .iter()
        .filter_map(|field| field.follows.as_deref())
        .collect();
    titles.sort_unstable();
    titles.dedup();
    let verb = if titles.len() == 1 {
        "changed"
    } else {
        "have changed"
    };
    (!titles.is_empty()).then(|| clean(&format!("{} {verb}", titles.join(", "))))
}

/// Whether a danger is told in the line that says what becomes of the object.
pub(super) fn is_told_in_fate(danger: &Finding) -> bool {
    matches!(danger.rule.id, "prune" | "uninstall")
}

/// `podinfo 6.5.0 → 6.6.1`, `redis:7.4 added`
pub(super) fn image(change: &ImageChange) -> String {
    let short = change.name.rsplit('/').next().unwrap_or_default();
    let version = |reference: &str| match reference.parse::<ImageRef>() {
        Ok(image) => match (image.tag(), image.digest()) {
            (Some(tag), _) => tag.to_owned(),
            (None, Some(digest)) => digest.chars().take(19).collect(),
            (None, None) => "latest".to_owned(),
        },
        Err(_) => reference.to_owned(),
    };
    let text = match (&change.from, &change.to) {
        (Some(from), Some(to)) if version(from) == version(to) => {
            // The tag stayed and the digest moved.
            let digest = |text: &str| {
                text.split_once('@')
                    .map_or("none", |(_, digest)| digest)
                    .chars()
                    .take(19)
                    .collect::<String>()
            };
            format!(
                "{short} {}@{} → {}",
                version(from),
                digest(from),
                digest(to)
            )
        }
        (Some(from), Some(to)) => format!("{short} {} → {}", version(from), version(to)),
        (None, Some(to)) => format!("{short} {} added", version(to)),
        (Some(from), None) => format!("{short} {} removed", version(from)),
        (None, None) => short.to_owned(),
    };
    clean(&text)
}

/// `apps/podinfo`, and how many more.
pub(super) fn users(change: &ImageChange) -> String {
    let name = |id: &ObjectId| {
        if id.namespace.is_empty() {
            id.name.to_string()
        } else {
            format!("{}/{}", id.namespace, id.name)
        }
    };
    let mut names: Vec<String> = change.objects.iter().take(3).map(name).collect();
    if change.objects.len() > names.len() {
        names.push(format!("{} more", change.objects.len() - names.len()));
    }
    clean(&names.join(", "))
}

/// The most lines that are named as causes of one change.
const MAX_CAUSES: usize = 6;

/// How [`because`] is told: causes that are known, or only the place of the object.
pub(super) fn lead(change: &Change) -> &'static str {
    if change.causes.is_empty() {
        "in"
    } else {
        "because"
    }
}

/// What a change comes from: `apps/values.yaml:4 (image.tag), :19 (resources)`, or else where its object is written.
pub(super) fn because(change: &Change) -> Option<String> {
    let mut told: Vec<String> = Vec::new();
    let mut last = "";
    for cause in change.causes.iter().take(MAX_CAUSES) {
        let file = cause.place.file.trim_start_matches('/');
        let shown = if file == last { "" } else { file };
        let name = match cause.name.as_str() {
            "" => String::new(),
            name => format!(" ({name})"),
        };
        told.push(format!("{shown}:{}{name}", cause.place.at.line));
        last = file;
    }
    match change.causes.len().saturating_sub(MAX_CAUSES) {
        0 => {}
        more => told.push(format!("and {more} more")),
    }
    if told.is_empty() {
        let place = change.place.as_ref()?.to_string();
        told.push(place.trim_start_matches('/').to_owned());
    }
    Some(clean(&told.join(", ")))
}

#[cfg(test)]
mod tests {
    use portolan_object::{Gvk, ObjectId, Owner, Place};
    use portolan_yaml::Text;

    use super::*;
    use crate::Cause;

    #[test]
    fn causes_in_one_file_name_it_once() {
        let cause = |file: &str, line: u32, name: &str| Cause {
            place: Place::line(file, line),
            name: Text::from(name),
        };
        let owner = Owner::new(OwnerKind::Release, "", "");
        let mut change = Change {
            id: ObjectId::new(Gvk::new("", "v1", "ConfigMap"), "", ""),
            owner,
            kind: ChangeKind::Changed,
            renamed_from: None,
            fields: Vec::new(),
            place: Some(Place::line("/chart/a.yaml", 2)),
            causes: Vec::new(),
        };
        assert_eq!(because(&change).unwrap(), "chart/a.yaml:2");
        assert_eq!(lead(&change), "in");
        change.causes = vec![
            cause("/apps/values.yaml", 4, "image.tag"),
            cause("/apps/values.yaml", 19, "resources"),
            cause("/settings.yaml", 3, ""),
        ];
        assert_eq!(
            because(&change).unwrap(),
            "apps/values.yaml:4 (image.tag), :19 (resources), settings.yaml:3"
        );
        assert_eq!(lead(&change), "because");
    }
}
