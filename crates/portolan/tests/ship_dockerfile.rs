//! Dockerfiles: built by the real buildah, and the command lines for the two that need a daemon.

mod portolan;

use std::fs;
use std::process::Command;

use portolan::project::{Project, statuses};
use portolan_testbed::has_program;

/// A project whose buildah keeps everything in the project's directory.
fn project(dockerfile: &str, fields: &str) -> Project {
    let mut project = Project::new(&format!(
        "  - {{name: legacy, image: registry.example/legacy, dockerfile: {{context: src, {fields}}}}}\n"
    ));
    project.write("src/Dockerfile", dockerfile);
    project.write("src/a", "a file");
    let path = |name: &str| project.path(name).to_str().expect("UTF-8").to_owned();
    project.write(
        "storage.conf",
        &format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = \"{}\"\nrunroot = \"{}\"\n",
            path("graph"),
            path("run")
        ),
    );
    let config = path("storage.conf");
    project.env.push(("CONTAINERS_STORAGE_CONF", config));
    project.env.push(("BUILDAH_ISOLATION", "chroot".to_owned()));
    project
}

#[test]
fn buildah_builds_a_dockerfile_once_and_again_when_an_input_changes() {
    if !has_program("buildah", "--version") {
        return;
    }
    let project = project(
        "FROM scratch AS other\nCOPY b /b\nFROM scratch AS run\nARG MODE=a\nCOPY a /a\nLABEL mode=$MODE\n",
        "target: run, args: {MODE: release}, engine: buildah",
    );
    project.write("src/.dockerignore", "ignored\n");
    let (first, code) = project.build(&[]);
    assert_eq!(code, 0, "{first:#}");
    assert_eq!(statuses(&first), [("legacy", "built")]);
    project.write("src/ignored", "no input");
    assert_eq!(statuses(&project.build(&[]).0), [("legacy", "cached")]);
    project.write("src/a", "another file");
    let (second, _) = project.build(&[]);
    assert_eq!(
        second["artifacts"][0]["because"],
        serde_json::json!(["/a changed"])
    );
    assert_ne!(
        first["artifacts"][0]["digest"],
        second["artifacts"][0]["digest"]
    );
    // The same inputs elsewhere are the same image.
    project.write("src/a", "a file");
    let store = tempfile::tempdir().expect("a directory");
    let (again, _) = project.build(&["--store", store.path().to_str().expect("UTF-8")]);
    assert_eq!(statuses(&again), [("legacy", "built")]);
    assert_eq!(
        first["artifacts"][0]["digest"],
        again["artifacts"][0]["digest"]
    );
    // Its own storage holds nothing afterwards.
    let images = Command::new("buildah")
        .args(["images", "--quiet"])
        .envs(
            project
                .env
                .iter()
                .map(|(name, value)| (*name, value.as_str())),
        )
        .output()
        .expect("buildah");
    assert_eq!(String::from_utf8_lossy(&images.stdout), "");
    if has_program("skopeo", "--version") {
        let layout = format!("oci:{}:legacy", project.path(".portolan").display());
        let seen = Command::new("skopeo")
            .args(["inspect", &layout])
            .output()
            .expect("skopeo");
        let seen = String::from_utf8_lossy(&seen.stdout);
        assert!(seen.contains("\"mode\": \"release\""), "{seen}");
    }
}

#[test]
fn what_buildah_says_of_a_broken_dockerfile_is_told() {
    if !has_program("buildah", "--version") {
        return;
    }
    let project = project("FROM scratch\nCOPY nothing /a\n", "engine: buildah");
    let (result, code) = project.build(&[]);
    assert_eq!(code, 1, "{result:#}");
    let error = result["artifacts"][0]["error"].as_str().expect("an error");
    assert!(
        error.contains("`buildah` ended with") && error.contains("nothing"),
        "{error}"
    );
}

/// The scripts in `handwritten` stand for programs whose daemons are not here: this shows the command lines, and nothing of
/// the programs.
#[test]
fn docker_and_buildkit_are_called_as_their_documentation_says() {
    for (engine, program) in [("docker", "docker"), ("buildkit", "buildctl")] {
        let mut project = project(
            "FROM scratch\n",
            &format!(
                "engine: {engine}, target: run, args: {{MODE: a b}}, platforms: [linux/amd64, linux/arm64], secrets: {{token: {{env: TOKEN}}}}, cacheFrom: [r.example/c]"
            ),
        );
        // The image that the scripts leave: one of ours.
        let maker = Project::new(portolan::project::WEB);
        assert_eq!(maker.build(&[]).1, 0);
        let copied = Command::new("cp")
            .arg("-r")
            .arg(maker.path(".portolan"))
            .arg(project.path("layout"))
            .status();
        assert!(copied.expect("cp").success());
        let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/handwritten");
        let path = std::env::var("PATH").expect("a PATH");
        let home = project.directory.path().to_str().expect("UTF-8").to_owned();
        project.env = vec![
            ("PATH", format!("{scripts}:{path}")),
            ("HOME", home),
            ("TOKEN", "planted-4711".to_owned()),
        ];
        let (result, code) = project.build(&[]);
        assert_eq!(code, 0, "{result:#}");
        let arguments = fs::read_to_string(project.path("arguments")).expect("arguments");
        assert!(!arguments.contains("planted"), "{arguments}");
        let wanted: &[&str] = if program == "docker" {
            &[
                "buildx\nbuild\n",
                "--target\nrun\n",
                "--build-arg\nMODE=a b\n",
                "--platform\nlinux/amd64,linux/arm64\n",
                "--secret\nid=token,src=",
                "--cache-from\nr.example/c\n",
                "--output\ntype=oci,dest=",
            ]
        } else {
            &[
                "build\n",
                "--frontend\ndockerfile.v0\n",
                "--opt\ntarget=run\n",
                "--opt\nbuild-arg:MODE=a b\n",
                "--opt\nplatform=linux/amd64,linux/arm64\n",
                "--secret\nid=token,src=",
                "--import-cache\ntype=registry,ref=r.example/c\n",
                "--output\ntype=oci,dest=",
            ]
        };
        for part in wanted {
            assert!(arguments.contains(part), "{part}\n{arguments}");
        }
    }
}

#[test]
fn without_a_program_that_builds_dockerfiles_that_is_told() {
    let mut project = project("FROM scratch\n", "engine: auto");
    project.env = vec![("PATH", "/nowhere".to_owned())];
    let (result, code) = project.build(&[]);
    assert_eq!(code, 1);
    let error = result["artifacts"][0]["error"].as_str().expect("an error");
    assert!(
        error.contains("none of `buildah`, `buildctl` and `docker` is installed"),
        "{error}"
    );
}
