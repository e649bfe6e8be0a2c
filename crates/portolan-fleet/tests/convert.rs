//! Playbooks as people have them, and the books that they become. A case is a folder: `playbook.yml`, and the expected
//! books and notes in `book.yaml` (`PORTOLAN_UPDATE=1` writes it).

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use portolan_fleet::{BookSource, MemoryFiles, compile, convert_playbook};

fn converted(directory: &Path) -> String {
    let playbook = std::fs::read_to_string(directory.join("playbook.yml")).expect("a playbook");
    let plays = convert_playbook(&playbook, "web").expect("a playbook");
    let mut out = String::new();
    for play in plays {
        // What comes out must be a book without faults.
        let source = BookSource::new("book.yaml", &play.text, Arc::new(MemoryFiles::default()));
        let faults = compile(&source).err().unwrap_or_default();
        let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert!(told.is_empty(), "{}\n{}", told.join("\n"), play.text);
        out.push_str("---\n");
        for note in &play.notes {
            writeln!(out, "# line {}: {}", note.line, note.message).expect("a text takes all");
        }
        out.push_str(&play.text);
    }
    out
}

#[test]
fn playbooks_become_books_that_lint_takes() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/convert");
    let mut count = 0;
    for case in std::fs::read_dir(cases).expect("cases") {
        let case = case.expect("a case").path();
        let found = converted(&case);
        let expected = case.join("book.yaml");
        if std::env::var_os("PORTOLAN_UPDATE").is_some() {
            std::fs::write(&expected, &found).expect("a file of the case");
        }
        let kept = std::fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(found, kept, "{}", case.display());
        count += 1;
    }
    assert!(count >= 2, "{count} cases");
}

#[test]
fn what_is_no_playbook_is_told() {
    for (text, told) in [
        ("a: 1", "not a list of plays"),
        ("- 1", "not a list of plays"),
        ("", "not a list of plays"),
        ("- hosts: [", "line"),
    ] {
        let error = convert_playbook(text, "x").expect_err("no playbook");
        assert!(error.to_string().contains(told), "{text}: {error}");
    }
}
