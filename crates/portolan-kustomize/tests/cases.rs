//! Small overlays, one per feature and edge, in `tests/cases/<area>/<case>/`.
//!
//! Each folder is a tree of files whose `overlay` directory (or itself, where there is none) is built. `expected.yaml`
//! is what kustomize 5.8.1 prints for it; `refused.txt` stands where it refuses, with its words, and `answer.txt` beside it
//! holds ours, which say the same in another way. `flags.txt` holds flags of the build. `make-expected.sh` writes the
//! files of kustomize anew with a real one; with `UPDATE_ANSWERS` set, this test writes ours.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and says why"
)]

use std::error::Error;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_kustomize::{LoadRestrictor, Options, build, to_yaml};
use portolan_vfs::Disk;

fn directories(path: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut found: Vec<Utf8PathBuf> = path
        .read_dir_utf8()
        .unwrap()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

fn run(case: &Utf8Path) -> Result<String, String> {
    let mut options = Options::default();
    if fs::read_to_string(case.join("flags.txt"))
        .is_ok_and(|flags| flags.contains("LoadRestrictionsNone"))
    {
        options.load_restrictor = LoadRestrictor::None;
    }
    let overlay = case.join("overlay");
    let root = if overlay.is_dir() {
        overlay
    } else {
        case.to_owned()
    };
    let set = build(&root, &Disk::machine(), &options).map_err(|error| chain(&error, case))?;
    to_yaml(&set).map_err(|error| error.to_string())
}

/// The whole error as a command prints it, the case's own directory as `/case`.
fn chain(error: &dyn Error, case: &Utf8Path) -> String {
    let mut lines = vec![format!("{error}\n")];
    let mut source = error.source();
    while let Some(error) = source {
        lines.push(format!("because: {error}\n"));
        source = error.source();
    }
    lines.concat().replace(case.as_str(), "/case")
}

fn check_answer(case: &Utf8Path, answer: &str) {
    assert!(case.join("refused.txt").is_file(), "{case}: {answer}");
    let file = case.join("answer.txt");
    if std::env::var_os("UPDATE_ANSWERS").is_some() {
        fs::write(&file, answer).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(answer, expected, "{case}");
}

#[test]
fn every_case_is_like_kustomize() {
    let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut count = 0;
    for case in directories(&root).iter().flat_map(|area| directories(area)) {
        count += 1;
        match (run(&case), fs::read_to_string(case.join("expected.yaml"))) {
            (Ok(output), Ok(expected)) => assert_eq!(output, expected, "{case}"),
            (Err(error), Ok(_)) => panic!("{case} was refused: {error}"),
            (Ok(_), Err(_)) => panic!("{case} was not refused"),
            (Err(answer), Err(_)) => check_answer(&case, &answer),
        }
    }
    assert!(count > 60, "only {count} cases were found");
}
