//! What the audit reads: manifests, rules and accepted findings.

use portolan_audit::{Baseline, Checker, Counts, Day, Format, Report, Rules, Site, Table, merge};

use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "audit-manifest",
        about: "manifests: checked, merged, fixed and printed in every form",
        run: manifest,
        seeds: || {
            texts(&[
                "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n---\napiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: i, namespace: n}\nspec: {backend: {serviceName: s, servicePort: 80}}\n",
                "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"batch/v1beta1\",\"kind\":\"CronJob\",\"metadata\":{\"name\":\"c\"}}]}",
            ])
        },
    },
    Target {
        name: "audit-settings",
        about: "a file of rules and of accepted findings, used on a finding",
        run: settings,
        seeds: || {
            texts(&[
                "rules:\n- {apiVersion: example.com/v1, kind: X, deprecated: '1.2', removed: '2.0', component: x, replacement: example.com/v2, expires: 2027-01-31}\n",
                "accept:\n- {kind: PodDisruptionBudget, name: 'w*', reason: later, expires: 2027-03-31}\n",
            ])
        },
    },
];

const OLD: &[u8] =
    b"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: web}}";

fn manifest(bytes: &[u8]) -> bool {
    let checker = Checker::default();
    let site = Site {
        file: Some("a.yaml".to_owned()),
        ..Site::default()
    };
    let findings = merge(checker.check_text(bytes, &site).findings);
    let accepted = Baseline::text(&findings, "reason", Day::of_unix_seconds(0));
    if !findings.is_empty() {
        Baseline::read(accepted.as_bytes()).expect("what we write we read");
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let patch = checker.fix(text);
        assert!(
            patch.is_empty() || patch.apply(text) != text,
            "a patch changes something"
        );
        let _ = patch.unified("a.yaml", text);
    }
    let is_taken = !findings.is_empty();
    let report = Report::new(findings, Counts::default(), &checker.target);
    for format in [
        Format::Json,
        Format::Yaml,
        Format::Csv,
        Format::Markdown,
        Format::Sarif,
        Format::Junit,
        Format::Github,
    ] {
        let _ = report.text(format, "0");
    }
    is_taken
}

fn settings(bytes: &[u8]) -> bool {
    let today = Day::of_unix_seconds(1_800_000_000);
    let mut checker = Checker::default();
    let rules = Rules::read(bytes);
    let is_rules = rules.is_ok();
    if let Ok(rules) = rules {
        let (rows, _) = rules.rows(today);
        checker.table = Table::with(rows);
    }
    let mut findings = checker.check_text(OLD, &Site::default()).findings;
    let baseline = Baseline::read(bytes);
    if let Ok(baseline) = &baseline {
        let _ = baseline.apply(&mut findings, today);
    }
    is_rules || baseline.is_ok()
}
