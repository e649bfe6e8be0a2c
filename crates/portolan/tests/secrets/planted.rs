//! A Flux repository and a home with secrets planted wherever a command reads them.
//!
//! Each secret ends in a part of plain letters and digits, which no format escapes: whoever shows the secret in any
//! form shows that part as it is, in capitals, or in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

use crate::portolan::repository::{kustomization, repository, write};
use crate::seal::seal;

/// The key that opens the sealed objects; it must not be shown either.
pub(crate) fn age_key() -> &'static str {
    let text = include_str!("../../../portolan-sops/tests/fixtures/key.txt");
    let key = text
        .lines()
        .find(|line| line.starts_with("AGE-SECRET-KEY-"));
    key.expect("the file has a key")
}

/// What must not be seen.
pub(crate) const CORES: [&str; 19] = [
    "Alpha7391",
    "Beta7391",
    "Gamma7391",
    "Delta7391",
    "Epsilon7391",
    "73917391739173",
    "ZetaLine1x7391ZetaLine1x7391",
    "ZetaLine2x7391ZetaLine2x7391",
    "Eta7391",
    "Theta7391",
    "Iota7391",
    "Kappa7391",
    "Lambda7391",
    "Mu7391mu",
    "Nu7391nu",
    "Xi7391xi",
    "Omicron7391",
    "Pi7391pi",
    "Rho7391",
];

/// Values of all kinds: plain, with markup, a tab, a line separator, an emoji, a key of several lines, an address.
const VALUES: [(&str, &str, &str); 7] = [
    ("ALPHA", "plant-Alpha7391", "str"),
    ("BETA", "plant&<Beta7391", "str"),
    ("GAMMA", "plant\tGamma7391", "str"),
    ("DELTA", "plant\u{2028}Delta7391", "str"),
    ("EPSILON", "plant😀Epsilon7391", "str"),
    (
        "ZETA",
        "-----BEGIN PRIVATE KEY-----\nZetaLine1x7391ZetaLine1x7391\nZetaLine2x7391ZetaLine2x7391\n-----END PRIVATE KEY-----\n",
        "str",
    ),
    (
        "ETA",
        "https://user:plant-Eta7391@db.example.org/x?a=1",
        "str",
    ),
];

/// Files of values: all on one line, in JSON with escapes, and one that is not even YAML.
const FILES: [(&str, &str, &str); 3] = [
    (
        "values.yaml",
        "pw: {p: plant-Theta7391, num: 73917391739173}",
        "str",
    ),
    (
        "odd.json",
        r#"{"odd":{"a":"plant\u0026\u003cBeta7391","b":"plant\tGamma7391","c":"plant\u2028Delta7391","d":"plant😀Epsilon7391"}}"#,
        "str",
    ),
    ("broken.yaml", "pw: [plant-Kappa7391", "str"),
];

const CHART: &str = r#"apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-echo}
data:
  plain: {{ .Values.pw.p }}
  quoted: {{ .Values.pw.p | quote }}
  encoded: {{ .Values.pw.p | b64enc }}
  login: {{ printf "user:%s" .Values.pw.p | b64enc }}
  capitals: {{ .Values.pw.p | upper }}
  url: https://user:{{ .Values.pw.p | urlquery }}@example.org
  json: {{ toJson .Values | quote }}
  number: {{ .Values.pw.num | int64 | quote }}
{{- range $name, $value := .Values.odd }}
  odd-{{ $name }}: {{ $value | quote }}
  json-{{ $name }}: {{ toJson $value | quote }}
{{- end }}
"#;

/// The repository, the former state of it, and the home directory.
pub(crate) struct Planted {
    pub(crate) repository: TempDir,
    pub(crate) former: TempDir,
    pub(crate) home: TempDir,
}

impl Planted {
    pub(crate) fn new() -> Self {
        let files = files();
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, text)| (*name, text.as_str()))
            .collect();
        let former = repository(&files);
        // Everything differs a little, so that a diff shows it.
        for name in [
            "web/config.yaml",
            "chart/templates/echo.yaml",
            "plain/replaced.yaml",
        ] {
            let text = files.iter().find(|(file, _)| *file == name);
            let text = text.expect("a file of the repository").1;
            write(
                former.path(),
                name,
                &text.replace("data:\n", "data:\n  former: x\n"),
            );
        }
        Self {
            repository: repository(&files),
            former,
            home: home(),
        }
    }
}

fn files() -> Vec<(&'static str, String)> {
    let head = |kind: &str, namespace: &str, name: &str| {
        format!(
            "apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n  namespace: {namespace}\n"
        )
    };
    let release = |name: &str, values: &str| {
        format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: {name}, namespace: web}}\nspec:\n  interval: 1h\n  chart: {{spec: {{chart: ./chart, sourceRef: {{kind: GitRepository, name: flux-system, namespace: flux-system}}}}}}\n{values}"
        )
    };
    let from = |key: &str| {
        let other = "    - {kind: Secret, name: sealed-values, valuesKey: odd.json}\n";
        format!(
            "  valuesFrom:\n    - {{kind: Secret, name: sealed-values, valuesKey: {key}}}\n{other}"
        )
    };
    // A line separator ends a line of YAML: Flux cannot put it into an object's text.
    let variables: String = VALUES
        .iter()
        .filter(|(name, _, _)| *name != "DELTA")
        .map(|(name, _, _)| ["  ", &name.to_lowercase(), ": \"${", name, "}\"\n"].concat())
        .collect();
    let decrypted = kustomization("sealed", "./sealed")
        .replace("spec: {", "spec: {decryption: {provider: sops}, ");
    let substituted = |name: &str, secret: &str| {
        kustomization(name, &format!("./{name}")).replace(
            "spec: {",
            &format!("spec: {{postBuild: {{substituteFrom: [{{kind: Secret, name: {secret}}}]}}, "),
        )
    };
    vec![
        ("cluster/sealed.yaml", decrypted),
        ("cluster/web.yaml", substituted("web", "variables")),
        ("cluster/plain.yaml", kustomization("plain", "./plain")),
        ("cluster/more.yaml", substituted("more", "plain-variables")),
        ("cluster/broken.yaml", substituted("broken", "plain-variables")),
        ("cluster/remote.yaml", kustomization("remote", "./remote")),
        (
            "sealed/variables.yaml",
            seal(&head("Secret", "flux-system", "variables"), "stringData", &VALUES, age_key()),
        ),
        (
            "sealed/values.yaml",
            seal(&head("Secret", "web", "sealed-values"), "stringData", &FILES, age_key()),
        ),
        (
            "sealed/numbers.yaml",
            seal(
                &head("ConfigMap", "web", "numbers"),
                "data",
                &[("number", "73917391739173", "int"), ("flag", "true", "bool")],
                age_key(),
            ),
        ),
        ("web/config.yaml", head("ConfigMap", "web", "config") + "data:\n" + &variables),
        ("web/named.yaml", head("ConfigMap", "web", "x-${ALPHA}") + "data: {}\n"),
        ("web/release.yaml", release("web", &from("values.yaml"))),
        (
            "web/failing.yaml",
            release("failing", &(from("values.yaml") + "  values: {fail: true}\n")),
        ),
        ("web/unreadable.yaml", release("unreadable", &from("broken.yaml"))),
        (
            "web/misplaced.yaml",
            release(
                "misplaced",
                "  valuesFrom:\n    - {kind: Secret, name: sealed-values, valuesKey: broken.yaml, targetPath: 'a[x'}\n",
            ),
        ),
        (
            "plain/secret.yaml",
            head("Secret", "flux-system", "plain-variables")
                + "stringData: {IOTA: plant-Iota7391, BROKEN: '\"plant-Lambda7391: ['}\n",
        ),
        (
            "plain/malformed.yaml",
            head("Secret", "web", "malformed") + "stringdata: {a: plant-Omicron7391}\n",
        ),
        (
            "plain/replaced.yaml",
            head("ConfigMap", "web", "replaced") + "data:\n  copy: none\n",
        ),
        (
            "plain/kustomization.yaml",
            "resources: [secret.yaml, malformed.yaml, replaced.yaml]\nsecretGenerator:\n- name: generated\n  namespace: web\n  literals: [token=plant-Mu7391mu]\nreplacements:\n- source: {kind: Secret, name: generated, fieldPath: data.token}\n  targets: [{select: {kind: ConfigMap, name: replaced}, fieldPaths: [data.copy]}]\n".to_owned(),
        ),
        (
            "more/config.yaml",
            head("ConfigMap", "web", "more") + "data:\n  iota: ${IOTA}\n",
        ),
        (
            "broken/config.yaml",
            head("ConfigMap", "web", "broken") + "data:\n  a: ${BROKEN}\n",
        ),
        (
            "remote/kustomization.yaml",
            "resources: [\"https://user:plant-Nu7391nu@127.0.0.1:1/a.git//x?ref=v1\"]\n".to_owned(),
        ),
        ("chart/Chart.yaml", "apiVersion: v2\nname: echo\nversion: 1.0.0\n".to_owned()),
        ("chart/templates/echo.yaml", CHART.to_owned()),
        (
            "chart/templates/broken.yaml",
            "{{- if .Values.fail }}{{ fail (printf \"no: %s %q\" .Values.pw.p (toJson .Values)) }}{{ end }}\n".to_owned(),
        ),
    ]
}

/// Logins for registries, web servers and a cluster.
fn home() -> TempDir {
    let login = STANDARD.encode("me:plant-Xi7391xi");
    let docker = format!(r#"{{"auths": {{"127.0.0.1:1": {{"auth": "{login}"}}}}}}"#);
    repository(&[
        (".docker/config.json", &docker),
        (
            ".netrc",
            "machine 127.0.0.1 login me password plant-Pi7391pi\n",
        ),
        ("age.txt", &format!("{}\n", age_key())),
    ])
}

/// What of the planted secrets a text shows, in any form.
pub(crate) fn shown_in(text: &str) -> Vec<&'static str> {
    let is_shown = |core: &&str| {
        let form = |shift: usize| {
            let padded = format!("{}{core}", "x".repeat(shift));
            let encoded = STANDARD.encode(&padded);
            let (start, end) = ((shift * 8).div_ceil(6), padded.len() * 8 / 6);
            encoded[start..end].to_owned()
        };
        text.contains(*core)
            || text.contains(&core.to_uppercase())
            || (0..3).any(|shift| text.contains(&form(shift)))
    };
    let key = std::iter::once(age_key());
    CORES.into_iter().chain(key).filter(is_shown).collect()
}
