//! The explanation of an object or field: a value, and below it what it came from, nearest first.

use portolan_object::{Act, Step};

use super::candidate_lines::{CandidateLine, Role};
use super::value_path::value_path;
use crate::inventory::PlacedObject;

/// Where an object or a field comes from.
pub struct ObjectExplanation {
    /// The value, or the object's name.
    pub head: String,
    /// What it came from, nearest first.
    pub causes: Vec<CauseLine>,
    /// What is said when there is no cause.
    pub otherwise: &'static str,
}

/// One thing that it came from.
pub struct CauseLine {
    /// What it is: `patched by …`, `value `image.tag` of …`.
    pub what: String,
    /// `apps/web.yaml:12`
    pub place: String,
    /// What stands there.
    pub text: String,
}

impl ObjectExplanation {
    /// How an object came about, and what its release is made of.
    pub(super) fn of_object(placed: &PlacedObject<'_>, made_of: &[Step]) -> Self {
        let origin = placed.object.origin();
        let steps = origin.steps().into_iter();
        let release = made_of.iter().map(CauseLine::of_release);
        Self {
            head: placed.id.to_string(),
            causes: steps.map(CauseLine::of_step).chain(release).collect(),
            otherwise: "its origin is not known",
        }
    }

    /// On which lines a field depends.
    pub(super) fn of_field(
        placed: &PlacedObject<'_>,
        value: String,
        mut deciding: Vec<CandidateLine>,
        show_secrets: bool,
    ) -> Self {
        deciding.sort_by(|a, b| (a.role, &a.file, a.line).cmp(&(b.role, &b.file, b.line)));
        deciding.dedup_by(|a, b| a.file == b.file && a.line == b.line);
        let mut causes: Vec<CauseLine> = Vec::new();
        // A chart that does not lie in the repository cannot be changed to see; its template is known all the same.
        if !deciding
            .iter()
            .any(|candidate| candidate.role == Role::Template)
        {
            let origin = placed.object.origin();
            let steps = origin.steps();
            let templates = steps.into_iter().filter(|step| step.act == Act::Template);
            causes.extend(templates.map(CauseLine::of_step));
        }
        causes.extend(
            deciding
                .iter()
                .map(|candidate| CauseLine::of_candidate(candidate, show_secrets)),
        );
        Self {
            head: value,
            causes,
            otherwise: "no single line of the repository decides it",
        }
    }
}

impl CauseLine {
    fn of_step(step: &Step) -> Self {
        let place = step.place.as_ref();
        let by = step.by.as_str();
        let what = match step.act {
            Act::Read if by.is_empty() => "read".to_owned(),
            Act::Read => format!("read by {by}"),
            Act::Template => format!("template of {by}"),
            Act::Generate => format!("made by {by}"),
            Act::Patch => format!("patched by {by}"),
            Act::Transform => format!("changed by {by}"),
            Act::Substitute => format!("variables put in by {by}"),
            Act::Decrypt => format!("decrypted by {by}"),
            Act::Build => format!("built by {by}"),
        };
        Self {
            what,
            place: place.map_or_else(String::new, |place| {
                place.to_string().trim_start_matches('/').to_owned()
            }),
            text: String::new(),
        }
    }

    /// A step on the way of the release that gave an object.
    fn of_release(step: &Step) -> Self {
        let mut cause = Self::of_step(step);
        cause.what = match (step.act, step.by.as_str()) {
            (Act::Read, "") => "release declared".to_owned(),
            (Act::Read, values) => values.to_owned(),
            _ => format!("release {}", cause.what),
        };
        cause
    }

    fn of_candidate(candidate: &CandidateLine, show_secrets: bool) -> Self {
        let of = &candidate.of;
        let path = || value_path(&candidate.changed, candidate.line);
        let named = || path().map_or_else(String::new, |path| format!("`{path}` "));
        let what = match candidate.role {
            Role::Template => format!("template of {of}"),
            Role::Default => format!("default {}of {of}", named()),
            Role::Value => format!("value {}of {of}", named()),
            Role::Change => format!("changed for {of}"),
            Role::Source => format!("written in {of}"),
            Role::Declaration => format!("said by {of}"),
            Role::Variable => format!("variable of {of}"),
        };
        let file = candidate.file.as_str().trim_start_matches('/');
        Self {
            what,
            place: format!("{file}:{}", candidate.line),
            text: if candidate.is_secret && !show_secrets {
                "(hidden)".to_owned()
            } else {
                candidate.text.clone()
            },
        }
    }
}
