//! Which inputs of a release count as different.

use std::collections::BTreeMap;
use std::sync::Arc;

use portolan_yaml::{Dialect, parse};

use super::*;
use crate::api::{NamespacedName, SourceRef};
use crate::release::values::{Referenced, compose};
use crate::version::flux_version::FluxVersion;

const RELEASE: &str = "\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: apps}
spec:
  interval: 1h
  chart: {spec: {chart: web, version: 1.0.0, sourceRef: {kind: HelmRepository, name: charts}}}
  values: {image: {tag: a}, replicas: 1}
";

/// A side as a test writes it.
struct Side {
    release: String,
    location: Result<Location, ChartError>,
    data: BTreeMap<String, (DataKind, String)>,
    is_whole: bool,
    capabilities: Capabilities,
    profile: Profile,
}

impl Side {
    fn new() -> Self {
        Self {
            release: RELEASE.to_owned(),
            location: Ok(repository("1.0.0")),
            data: BTreeMap::new(),
            is_whole: true,
            capabilities: Capabilities::default(),
            profile: Profile::NEWEST,
        }
    }

    fn with(release: &str) -> Self {
        Self {
            release: release.to_owned(),
            ..Self::new()
        }
    }

    fn inputs(&self) -> Inputs {
        let node = parse(self.release.clone(), Dialect::Kustomize)
            .unwrap()
            .remove(0);
        let release = HelmRelease::read(&node).unwrap();
        let composed = compose(&release, |kind, name| {
            let known = self.data.get(name).filter(|(known, _)| *known == kind);
            let Some((_, text)) = known else {
                return Referenced::Nothing;
            };
            let key = Text::from_static("values.yaml");
            Referenced::Known(Arc::new(BTreeMap::from([(key, text.clone().into_bytes())])))
        });
        let chart = self.location.as_ref().map(|location| ChartInput {
            location,
            source: None,
            files: FilesInput::Elsewhere,
        });
        let facts = SideFacts {
            capabilities: &self.capabilities,
            profile: self.profile,
            is_whole: self.is_whole,
        };
        Inputs::of_release(&release, &composed, chart, &facts)
    }
}

fn repository(version: &str) -> Location {
    Location::Repository {
        url: Text::from_static("https://charts.example"),
        name: Text::from_static("web"),
        version: Text::from(version),
        values: ValuesFiles::default(),
    }
}

/// What differs, a line each.
#[track_caller]
fn check(before: &Side, after: &Side, expected: &[&str]) {
    let differences = input_differences(&before.inputs(), &after.inputs());
    let side = |text: &InputText| match text {
        InputText::Text(text) => text.to_string(),
        other => format!("{other:?}"),
    };
    let lines: Vec<String> = differences
        .iter()
        .map(|one| {
            let (kind, name) = (one.kind.as_str(), &one.name);
            format!(
                "{kind} {name}: {} → {}",
                side(&one.before),
                side(&one.after)
            )
        })
        .collect();
    assert_eq!(lines, expected);
}

#[test]
fn equal_inputs_have_no_difference() {
    check(&Side::new(), &Side::new(), &[]);
}

#[test]
fn how_often_flux_looks_does_not_decide_what_is_rendered() {
    let after = RELEASE.replace("interval: 1h", "interval: 2h");
    check(&Side::new(), &Side::with(&after), &[]);
}

#[test]
fn a_chart_version_differs() {
    let after = Side {
        location: Ok(repository("1.1.0")),
        ..Side::new()
    };
    check(&Side::new(), &after, &["chart version : 1.0.0 → 1.1.0"]);
}

#[test]
fn the_address_and_the_name_of_a_chart_count() {
    let after = Side {
        location: Ok(Location::Registry {
            url: Text::from_static("oci://registry.example/charts/web"),
            reference: OciReference::Tag(Text::from_static("1.0.0")),
            layer: None,
            tracks_digest: true,
            values: ValuesFiles::default(),
        }),
        ..Side::new()
    };
    let expected = "source : https://charts.example → oci://registry.example/charts";
    check(&Side::new(), &after, &[expected]);
}

#[test]
fn values_differ_by_path() {
    let after = RELEASE.replace("tag: a}, replicas: 1", "tag: b}, more: [1]");
    check(
        &Side::new(),
        &Side::with(&after),
        &[
            "values image.tag: a → b",
            "values more: Absent → Opaque",
            "values replicas: 1 → Absent",
        ],
    );
}

#[test]
fn a_value_out_of_a_secret_is_compared_and_not_shown() {
    let from = format!("{RELEASE}  valuesFrom: [{{kind: Secret, name: settings}}]\n");
    let side = |password: &str| {
        let text = format!("password: {password}");
        Side {
            data: BTreeMap::from([("settings".to_owned(), (DataKind::Secret, text))]),
            ..Side::with(&from)
        }
    };
    check(&side("one"), &side("one"), &[]);
    let expected = "values password: Hidden → Hidden";
    check(&side("one"), &side("two"), &[expected]);
}

/// A change of the repository does not reach what lies outside of it.
#[test]
fn data_that_a_whole_repository_does_not_hold_is_the_same_on_both_sides() {
    let from = format!("{RELEASE}  valuesFrom: [{{kind: ConfigMap, name: settings}}]\n");
    check(&Side::with(&from), &Side::with(&from), &[]);
}

#[test]
fn data_that_may_come_from_what_was_not_built_is_unknown_and_differs() {
    let from = format!("{RELEASE}  valuesFrom: [{{kind: ConfigMap, name: settings}}]\n");
    let broken = || Side {
        is_whole: false,
        ..Side::with(&from)
    };
    let expected = "values ConfigMap settings: Unknown → Unknown";
    check(&broken(), &broken(), &[expected]);
}

#[test]
fn a_source_that_may_come_from_what_was_not_built_is_unknown_and_differs() {
    let side = |is_whole| Side {
        location: Err(ChartError::NoSource(SourceRef {
            kind: Text::from_static("HelmRepository"),
            id: NamespacedName::new("apps", "charts"),
        })),
        is_whole,
        ..Side::new()
    };
    check(&side(true), &side(true), &[]);
    check(&side(false), &side(false), &["chart : Unknown → Unknown"]);
}

#[test]
fn post_renderers_settings_and_versions_count() {
    let patched = format!("{RELEASE}  postRenderers: [{{kustomize: {{images: [{{name: a}}]}}}}]\n");
    let expected = "post-renderers : Opaque → Opaque";
    check(&Side::new(), &Side::with(&patched), &[expected]);
    let renamed = format!("{RELEASE}  releaseName: other\n");
    let expected = "settings : Opaque → Opaque";
    check(&Side::new(), &Side::with(&renamed), &[expected]);
    let older = Side {
        profile: "2.7".parse::<FluxVersion>().unwrap().profile(),
        ..Side::new()
    };
    let expected = "Flux version : 2.7 or older → 2.9 or newer";
    check(&older, &Side::new(), &[expected]);
}

#[test]
fn a_release_that_comes_differs_in_all_it_is_made_of() {
    let differences = input_differences(&Inputs::default(), &Side::new().inputs());
    let kinds: Vec<InputKind> = differences.iter().map(|one| one.kind).collect();
    assert!(kinds.contains(&InputKind::Chart) && kinds.contains(&InputKind::Values));
    assert!(
        differences
            .iter()
            .all(|one| one.before == InputText::Absent)
    );
}
