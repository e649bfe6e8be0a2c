//! What a document of `kind: Ship` must be, and what is said of one that is not.

use portolan_ship::{Adjustments, ArtifactSource, BaseImage, DocumentError, Fault, Ship};

const HEAD: &str = "apiVersion: portolan.dev/v1alpha1\nkind: Ship\nmetadata: {name: shop}\nspec:\n";

fn read(spec: &str) -> Result<Ship, DocumentError> {
    let variable = |name: &str| (name == "TEAM").then(|| "red".to_owned());
    Ship::read(&format!("{HEAD}{spec}"), &variable)
}

/// `line:column message`, and the hint after an arrow.
fn faults(spec: &str) -> Vec<String> {
    let faults = match read(spec) {
        Err(DocumentError::Faults(faults)) => faults,
        other => unreachable!("a document with faults: {other:?}"),
    };
    let told = faults.iter().map(|fault| {
        let hint = fault.hint.as_ref().map(|hint| format!(" → {hint}"));
        format!(
            "{}:{} {fault}{}",
            fault.at.line,
            fault.at.column,
            hint.unwrap_or_default()
        )
    });
    told.collect()
}

#[test]
fn an_artifact_of_files_needs_a_name_an_image_and_nothing_else() {
    let ship =
        read("  artifacts:\n  - {name: web, image: registry.example/web, oci: {context: web}}\n");
    let ship = ship.expect("a whole document");
    let web = ship.artifact("web").expect("it is there");
    let ArtifactSource::Oci(oci) = &web.source else {
        panic!("it is made of files");
    };
    assert_eq!(
        (oci.context.as_str(), oci.buckets, &oci.base),
        ("web", 8, &BaseImage::Scratch)
    );
    assert_eq!(oci.copies.len(), 1, "the context to /");
    assert_eq!(oci.platforms[0].to_string(), "linux/amd64");
}

#[test]
fn every_fault_is_told_with_its_place_and_the_nearest_name() {
    let spec = "  artifacts:\n  - name: web\n    image: registry.example/web\n    oci:\n      contxt: web\n      bucket: 3\n      compression: lzma\n      copy: [{from: a}]\n  - name: web\n    image: x\n    command: {run: []}\n  - {name: tool, image: x, oci: {}, command: {run: [a]}}\n";
    assert_eq!(
        faults(spec),
        [
            "9:7 `spec.artifacts[0].oci` has no field `contxt` → did you mean `context`?",
            "10:7 `spec.artifacts[0].oci` has no field `bucket` → did you mean `buckets`?",
            "11:20 `spec.artifacts[0].oci.compression`: must be `gzip` or `zstd`",
            "12:14 `spec.artifacts[0].oci.copy[0].to` is missing",
            "13:5 the artifact of line 6 is called `web` too",
            "15:14 `spec.artifacts[1].command.run` needs a program → write it as a list: `run: [./build.sh, --release]`",
            "16:5 `spec.artifacts[2]` needs exactly one of `oci`, `command`, `dockerfile`; several are there",
        ]
    );
}

#[test]
fn needs_must_be_there_and_not_go_round_in_a_circle() {
    let missing = "  artifacts:\n  - {name: web, image: x, needs: [bse], oci: {}}\n  - {name: base, image: x, oci: {}}\n";
    assert_eq!(
        faults(missing),
        ["6:5 `web` needs `bse`, and no artifact is called that → did you mean `base`?"]
    );
    let circle = "  artifacts:\n  - {name: a, image: x, needs: [b], oci: {}}\n  - {name: b, image: x, oci: {base: {artifact: c}}}\n  - {name: c, image: x, needs: [a], oci: {}}\n";
    assert_eq!(
        faults(circle),
        ["6:5 artifacts need each other in a circle: a → b → c → a"]
    );
}

#[test]
fn variables_are_put_in_and_those_of_builders_are_left_for_them() {
    let spec = "  artifacts:\n  - {name: web, image: 'registry.example/${TEAM}/${SIZE:-web}', oci: {copy: [{from: 'dist/${arch}', to: /app}]}}\n";
    let ship = read(spec).expect("a whole document");
    assert_eq!(ship.artifacts[0].image, "registry.example/red/web");
    let ArtifactSource::Oci(oci) = &ship.artifacts[0].source else {
        panic!("it is made of files");
    };
    assert_eq!(oci.copies[0].from, "dist/${arch}");
    let unset = faults("  artifacts:\n  - {name: web, image: '${OWNER}', oci: {}}\n");
    assert!(
        unset[0].starts_with("6:24 cannot put variables into `${OWNER}`"),
        "{unset:?}"
    );
}

#[test]
fn documents_of_other_kinds_are_left_to_others() {
    let none = |_: &str| None;
    let settings = "test: {disable: []}\n---\napiVersion: portolan.dev/v1alpha1\nkind: Settings\n";
    assert_eq!(Ship::read(settings, &none), Err(DocumentError::None));
    let both = format!("{settings}---\n{HEAD}  artifacts: []\n");
    assert!(Ship::read(&both, &none).is_ok());
    let twice = format!("{HEAD}  artifacts: []\n---\n{HEAD}  artifacts: []\n");
    assert_eq!(Ship::read(&twice, &none), Err(DocumentError::Several(7)));
    let Err(DocumentError::Faults(faults)) = Ship::read("apiVersion: v1\nkind: Ship\n", &none)
    else {
        panic!("another version");
    };
    assert_eq!(
        faults[0].to_string(),
        "`v1` is no version of a document of `kind: Ship`"
    );
}

/// Ten lists of ten aliases each are ten thousand million values.
#[test]
fn a_document_that_is_written_to_fill_the_memory_ends_at_a_limit() {
    let mut lines = vec!["  artifacts:\n  - &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned()];
    for level in 1..12 {
        let below = level - 1;
        let items = vec![format!("*a{below}"); 10].join(", ");
        lines.push(format!("  - &a{level} [{items}]\n"));
    }
    let bomb = lines.concat();
    assert!(matches!(read(&bomb), Err(DocumentError::Faults(_))));
    let deep = format!("  artifacts: {}{}\n", "[".repeat(5000), "]".repeat(5000));
    assert!(matches!(read(&deep), Err(DocumentError::Faults(_))));
    let long = format!("  # {}\n  artifacts: []\n", "x".repeat(5 << 20));
    assert!(matches!(read(&long), Err(DocumentError::TooLong(_))));
    let large = "v".repeat(1 << 20);
    let variable = |_: &str| Some(large.clone());
    let names: String = (0..100).map(|_| "  - '${A}'\n").collect();
    let text = format!("{HEAD}  artifacts:\n{names}");
    assert!(matches!(
        Ship::read(&text, &variable),
        Err(DocumentError::Faults(_))
    ));
}

#[test]
fn names_and_images_are_those_that_a_layout_and_a_registry_take() {
    for name in ["../x", "/etc/passwd", "a/b", ".hidden", "web-", "a b", ""] {
        let spec = format!("  artifacts:\n  - {{name: '{name}', image: x, oci: {{}}}}\n");
        assert!(!faults(&spec).is_empty(), "{name}");
    }
    for image in [
        "web:1",
        "r.example/web:1",
        "r.example/web@sha256:00",
        "Web",
        "r.example/a//b",
        "a b",
        "-r/x y",
    ] {
        let spec = format!("  artifacts:\n  - {{name: web, image: '{image}', oci: {{}}}}\n");
        assert!(!faults(&spec).is_empty(), "{image}");
    }
    for image in [
        "web",
        "localhost:5000/web",
        "r.example/a/b-c_d.e",
        "[::1]:5000/web",
    ] {
        let spec = format!("  artifacts:\n  - {{name: web, image: '{image}', oci: {{}}}}\n");
        assert!(read(&spec).is_ok(), "{image}");
    }
}

/// A secret becomes a file of its name.
#[test]
fn the_name_of_a_secret_leads_nowhere() {
    let spec = "  artifacts:\n  - {name: a, image: x, command: {run: [a], secrets: {../../x: {env: A}}}}\n";
    let told = faults(spec);
    assert!(
        told[0].contains("`../../x` is no name for a secret"),
        "{told:?}"
    );
}

const PROFILES: &str = "  artifacts:
  - {name: web, image: r/web, oci: {context: web, env: {A: one, B: two}, platforms: [linux/amd64]}}
  - {name: tool, image: r/tool, oci: {context: tool}}
  profiles:
  - name: small
    when: {command: [dev], context: ['kind-*', minikube]}
    spec:
      artifacts:
      - {name: web, oci: {compression: zstd, env: {B: null, C: three}, platforms: [linux/arm64]}}
      - {name: more, image: r/more, oci: {context: more}}
  - {name: other, spec: {artifacts: [{name: web, image: other/web}]}}
";

fn adjusted(asked: &Adjustments) -> Result<Ship, DocumentError> {
    Ship::read_adjusted(&format!("{HEAD}{PROFILES}"), &|_| None, asked)
}

fn asked(profiles: &[&str], command: &str, context: Option<&str>) -> Adjustments {
    Adjustments {
        profiles: profiles.iter().map(|&name| name.to_owned()).collect(),
        command: command.to_owned(),
        context: context.map(str::to_owned),
        ..Adjustments::default()
    }
}

#[test]
fn profiles_are_laid_over_by_name_or_where_they_are_meant() {
    let names = |ship: &Ship| -> Vec<String> {
        let names = ship.artifacts.iter().map(|artifact| artifact.name.clone());
        names.collect()
    };
    let plain = adjusted(&asked(&[], "build", Some("kind-dev"))).expect("a document");
    assert_eq!(names(&plain), ["web", "tool"]);
    for asked in [
        asked(&["small"], "build", None),
        asked(&[], "dev", Some("kind-dev")),
        asked(&[], "dev", Some("minikube")),
    ] {
        let ship = adjusted(&asked).expect("a document");
        assert_eq!(names(&ship), ["web", "tool", "more"], "{asked:?}");
        let ArtifactSource::Oci(web) = &ship.artifacts[0].source else {
            unreachable!("it is made of files");
        };
        // Maps merge, null removes, a list without names is replaced.
        let env: Vec<&str> = web
            .config
            .env
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(env, ["A", "C"]);
        assert_eq!(web.context, "web");
        assert_eq!(web.platforms.len(), 1);
        assert_eq!(web.platforms[0].to_string(), "linux/arm64");
        assert_ne!(web.compression, plain_compression(&plain));
    }
    // One condition of two is not enough.
    let elsewhere = adjusted(&asked(&[], "dev", Some("production"))).expect("a document");
    assert_eq!(elsewhere, plain);
    let both = adjusted(&asked(&["other", "small"], "build", None)).expect("a document");
    assert_eq!(both.artifacts[0].image, "other/web");
    let Err(DocumentError::Faults(faults)) = adjusted(&asked(&["smal"], "build", None)) else {
        unreachable!("there is no such profile");
    };
    assert_eq!(faults[0].message, "the document has no profile `smal`");
    assert_eq!(faults[0].hint.as_deref(), Some("did you mean `small`?"));
}

fn plain_compression(ship: &Ship) -> portolan_image::Compression {
    match &ship.artifacts[0].source {
        ArtifactSource::Oci(source) => source.compression,
        _ => unreachable!("it is made of files"),
    }
}

#[test]
fn single_values_are_set_by_their_path() {
    let with = |path: &str, value: &str| {
        adjusted(&Adjustments {
            set: vec![(path.to_owned(), value.to_owned())],
            ..Adjustments::default()
        })
    };
    let ship = with("artifacts.web.image", "mine/web").expect("a document");
    assert_eq!(ship.artifacts[0].image, "mine/web");
    let ship = with("spec.artifacts[1].needs", "[web]").expect("a document");
    assert_eq!(ship.artifacts[1].needs, ["web"]);
    let ship = with("artifacts[tool].oci.labels.team", "red").expect("a document");
    let ArtifactSource::Oci(tool) = &ship.artifacts[1].source else {
        unreachable!("it is made of files");
    };
    assert_eq!(tool.config.labels["team"], "red");
    for (path, value, message) in [
        (
            "artifacts.wbe.image",
            "x",
            "there is no entry `wbe`; did you mean `web`?",
        ),
        (
            "artifacts.web.image.below",
            "x",
            "`below` is below a single value",
        ),
        ("", "x", "the path is empty"),
        ("artifacts.web.imge", "x", "has no field `imge`"),
        (
            "artifacts.web.image",
            "null",
            "`spec.artifacts[0].image` is missing",
        ),
    ] {
        let Err(DocumentError::Faults(faults)) = with(path, value) else {
            unreachable!("{path} is wrong");
        };
        assert!(faults[0].message.contains(message), "{faults:?}");
    }
}

/// A profile that is written to fill the memory ends at a limit, like the document itself.
#[test]
fn profiles_made_of_aliases_end_at_a_limit() {
    let mut text = format!("{HEAD}  artifacts: []\n  dev: &z {{a: 1}}\n  profiles:\n");
    let mut last = "{x: 1, y: 2}".to_owned();
    for level in 0..30 {
        let profile =
            format!("{{name: p{level}, spec: {{dev: &a{level} {{l: {last}, r: {last}}}}}}}");
        text = format!("{text}  - {profile}\n");
        last = format!("*a{level}");
    }
    let profiles: Vec<String> = (0..30).map(|level| format!("p{level}")).collect();
    let asked = Adjustments {
        profiles,
        ..Adjustments::default()
    };
    assert!(Ship::read_adjusted(&text, &|_| None, &asked).is_err());
}

/// Images go elsewhere, and objects still know them by the name that the document says.
#[test]
fn images_go_to_the_registry_of_the_command_line() {
    let with = |registry: &str| {
        adjusted(&Adjustments {
            registry: Some(registry.to_owned()),
            ..Adjustments::default()
        })
    };
    let plain = adjusted(&Adjustments::default()).expect("a document");
    let ship = with("localhost:5000/me/").expect("a document");
    for (artifact, before) in ship.artifacts.iter().zip(&plain.artifacts) {
        assert!(
            artifact.image.starts_with("localhost:5000/me/"),
            "{artifact:?}"
        );
        assert_eq!(artifact.named, before.image);
    }
    for wrong in ["", "UPPER/Case", "a b", "registry.example/x@sha256:1"] {
        let Err(DocumentError::Faults(faults)) = with(wrong) else {
            unreachable!("`{wrong}` is wrong");
        };
        assert!(faults[0].message.contains("--registry"), "{faults:?}");
    }
}

const STEPS: &str = "  deploy:
  - {name: a, namespace: one, manifests: {paths: [deploy]}}
  - name: b
    manifests: {paths: [deploy]}
    before: [{run: [./migrate.sh], timeout: 1m, env: [HOME]}]
    after: [{run: [./tell.sh, '${TEAM:-red}']}, {run: [./more.sh]}]
  verify:
  - {name: up, namespace: one, cluster: {apiVersion: v1, kind: Pod, name: a}}
  dev: {forward: [{resource: service/web, port: 80}]}
";

#[test]
fn everything_is_in_the_namespace_of_the_command_line() {
    let text = format!("{HEAD}{STEPS}");
    let asked = Adjustments {
        namespace: Some("two".to_owned()),
        ..Adjustments::default()
    };
    let ship = Ship::read_adjusted(&text, &|_| None, &asked).expect("a document");
    let steps = ship.deploy.iter().map(|step| step.namespace.as_deref());
    let checks = ship.verify.iter().map(|check| check.namespace.as_deref());
    let forwards = ship.dev.forward.iter().map(|it| it.namespace.as_deref());
    let all: Vec<Option<&str>> = steps.chain(checks).chain(forwards).collect();
    assert_eq!(all, [Some("two"); 4]);
    let plain = Ship::read(&text, &|_| None).expect("a document");
    assert_eq!(plain.deploy[0].namespace.as_deref(), Some("one"));
    assert_eq!(plain.deploy[1].namespace, None);
}

#[test]
fn a_step_has_commands_before_and_after_it() {
    let ship = Ship::read(&format!("{HEAD}{STEPS}"), &|_| None).expect("a document");
    let step = &ship.deploy[1];
    assert_eq!(step.before[0].run, ["./migrate.sh"]);
    assert_eq!(step.before[0].env, ["HOME"]);
    assert_eq!(step.before[0].timeout.as_secs(), 60);
    let after: Vec<&[String]> = step.after.iter().map(|it| it.run.as_slice()).collect();
    assert_eq!(after, [&["./tell.sh", "red"][..], &["./more.sh"][..]]);
    for (wrong, message) in [
        (
            "before: [{}]",
            "`spec.deploy[0].before[0].run` needs a program",
        ),
        ("before: ./x.sh", "`spec.deploy[0].before` must be a list"),
        (
            "after: [{rnu: [a]}]",
            "`spec.deploy[0].after[0]` has no field `rnu`",
        ),
    ] {
        let text = format!("{HEAD}  deploy: [{{name: a, manifests: {{paths: [d]}}, {wrong}}}]\n");
        let Err(DocumentError::Faults(faults)) = Ship::read(&text, &|_| None) else {
            unreachable!("`{wrong}` is wrong");
        };
        let is_told = |fault: &Fault| fault.message.contains(message);
        assert!(faults.iter().any(is_told), "{faults:?}");
    }
}
