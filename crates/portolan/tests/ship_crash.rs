//! Builds that are killed at any moment: no half blob, no lost event, and the next build goes on.

mod portolan;

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use portolan::project::Project;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Builds that are killed, and with `PORTOLAN_LONG`.
const KILLS: [u64; 2] = [12, 200];

fn artifacts() -> String {
    let mut artifacts = String::new();
    for number in 0..6 {
        let line = format!(
            "  - {{name: files{number}, image: x, oci: {{context: web, labels: {{n: '{number}'}}, compression: zstd}}}}\n  - name: made{number}\n    image: x\n    needs: [files{number}]\n    command: {{run: [sh, -c, 'head -c 300000 /dev/urandom > $PORTOLAN_OUT/a; sleep 0.02'], output: files, inputs: [web/f0], set: {{N: '{number}'}}}}\n"
        );
        artifacts.push_str(&line);
    }
    artifacts
}

#[test]
fn a_build_killed_at_any_moment_is_continued() {
    let kills = KILLS[usize::from(std::env::var_os("PORTOLAN_LONG").is_some())];
    let mut project = Project::new(&artifacts());
    for number in 0..40 {
        project.write(
            &format!("web/f{number}"),
            &number.to_string().repeat(10_000),
        );
    }
    for kill in 0..kills {
        if kill % 6 == 0 {
            // From the beginning again.
            let _ = fs::remove_dir_all(project.path(".portolan"));
        }
        let mut build = project
            .command(&["ship", "build", "--jobs", "4"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary was built with this test");
        // Another moment each time; a build takes some hundred milliseconds.
        std::thread::park_timeout(Duration::from_millis(5 + kill * 37 % 300));
        let _ = build.kill();
        build.wait().expect("it was started");
        check_store(&project, kill);
        check_events(&project, kill);
    }
    let (result, code) = project.build(&[]);
    assert_eq!(code, 0, "{result:#}");
    check_store(&project, kills);
    for run in fs::read_dir(project.path(".portolan/portolan/runs"))
        .expect("runs")
        .flatten()
    {
        assert!(!run.path().join("scratch").exists());
    }
    project.env.clear();
}

/// Every blob is what its name says.
fn check_store(project: &Project, kill: u64) {
    let Ok(blobs) = fs::read_dir(project.path(".portolan/blobs/sha256")) else {
        return;
    };
    for blob in blobs.flatten() {
        let name = blob.file_name().into_string().expect("UTF-8");
        let content = fs::read(blob.path()).expect("a blob");
        let digest = format!("{:x}", Sha256::digest(&content));
        assert_eq!(digest, name, "kill {kill}");
    }
    let index = fs::read_to_string(project.path(".portolan/index.json"));
    assert!(
        index.is_err() || serde_json::from_str::<Value>(&index.expect("text")).is_ok(),
        "kill {kill}"
    );
}

/// Numbers without gaps, every end after its start, and whatever was told to be built is in the store.
fn check_events(project: &Project, kill: u64) {
    let events = project.run(&["events"]);
    if events.code != 0 {
        return;
    }
    let mut started = Vec::new();
    for (at, line) in events.stdout.lines().enumerate() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(event["seq"], at as u64 + 1, "kill {kill}");
        match event["event"].as_str() {
            Some("started") => started.push(event["key"].clone()),
            Some("done") => {
                assert!(started.contains(&event["key"]), "kill {kill}: {line}");
                let digest = event["summary"]["digest"].as_str().expect("a digest");
                let blob = digest.replace("sha256:", "");
                assert!(
                    project
                        .path(&format!(".portolan/blobs/sha256/{blob}"))
                        .is_file(),
                    "kill {kill}: {line}"
                );
            }
            _ => {}
        }
    }
}
