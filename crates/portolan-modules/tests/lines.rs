//! The edges of the modules `line` and `block`.

mod bed;

use bed::{Bed, faults, shown};
use serde_json::json;

/// Runs a module on a file with a content and gives the content afterwards, or the error.
fn edited(
    module: &str,
    mut parameters: serde_json::Value,
    content: &str,
) -> Result<String, String> {
    let bed = Bed::new();
    bed.write("/x", content);
    parameters["path"] = "/x".into();
    match bed.converge(module, &parameters) {
        Ok(_) => Ok(bed.read("/x")),
        Err(error) => Err(shown(&error)),
    }
}

fn line(parameters: serde_json::Value, content: &str) -> String {
    edited("line", parameters, content).expect("the line is put")
}

#[test]
fn the_last_match_is_replaced() {
    let parameters = json!({"line": "port = 9", "match": "^port ?="});
    assert_eq!(
        line(parameters.clone(), "port=1\nport=2\nhost=x\n"),
        "port=1\nport = 9\nhost=x\n"
    );
    // Also when the line stands elsewhere already: that is what the expression asks for.
    assert_eq!(
        line(parameters, "port = 9\nport=2\n"),
        "port = 9\nport = 9\n"
    );
}

#[test]
fn absent_removes_all() {
    let parameters = json!({"match": "^#", "state": "absent"});
    assert_eq!(line(parameters.clone(), "# a\nb\n#c\n"), "b\n");
    assert_eq!(line(parameters, ""), "");
    assert_eq!(
        line(json!({"line": "b", "state": "absent"}), "b\nbb\nb"),
        "bb\n"
    );
}

#[test]
fn an_expression_that_does_not_match_the_line_is_refused() {
    let found = faults("line", &json!({"path": "/x", "line": "a", "match": "^b"}));
    assert_eq!(
        found,
        "`match` does not match `line`: each run would add the line again"
    );
    assert!(
        faults("line", &json!({"path": "/x", "line": "a", "match": "("}))
            .contains("not a regular expression")
    );
    assert!(faults("line", &json!({"path": "/x", "line": "a\nb"})).contains("must be one line"));
    assert!(
        faults("line", &json!({"path": "/x", "state": "absent"}))
            .contains("needs one of `line`, `match`")
    );
    assert!(faults("line", &json!({"path": "/x"})).contains("`line` is missing"));
}

#[test]
fn the_final_newline_is_added_only_when_appending() {
    assert_eq!(line(json!({"line": "b"}), "a"), "a\nb\n");
    assert_eq!(line(json!({"line": "b", "match": "^b"}), "a\nb1"), "a\nb");
    assert_eq!(line(json!({"line": "b", "after": "^a"}), "a\nc"), "a\nb\nc");
    assert_eq!(line(json!({"line": "a", "state": "absent"}), "a\nb"), "b");
}

#[test]
fn the_line_ending_of_the_file_is_kept() {
    assert_eq!(line(json!({"line": "b"}), "a\r\n"), "a\r\nb\r\n");
    assert_eq!(
        line(json!({"line": "x", "match": "^[ax]"}), "a\r\nc\n"),
        "x\r\nc\n"
    );
}

#[test]
fn a_new_line_is_put_after_or_before_the_last_match() {
    assert_eq!(
        line(json!({"line": "n", "after": "^s"}), "s1\ns2\nt\n"),
        "s1\ns2\nn\nt\n"
    );
    assert_eq!(
        line(json!({"line": "n", "before": "^s"}), "s1\ns2\nt\n"),
        "s1\nn\ns2\nt\n"
    );
    assert_eq!(line(json!({"line": "n", "after": "^z"}), "a\n"), "a\nn\n");
    assert_eq!(
        line(json!({"line": "a", "after": "^z"}), "a\nz\n"),
        "a\nz\n"
    );
    assert!(
        faults(
            "line",
            &json!({"path": "/x", "line": "a", "after": "b", "before": "c"})
        )
        .contains("cannot stand beside")
    );
}

#[test]
fn a_missing_file_is_an_error_unless_it_is_made() {
    let bed = Bed::new();
    let error = bed
        .plan("line", &json!({"path": "/new", "line": "a"}))
        .unwrap_err();
    assert_eq!(
        shown(&error),
        "cannot change `/new`: there is no such file; hint: `create: true` makes it"
    );
    bed.converge(
        "line",
        &json!({"path": "/new", "line": "a", "create": true}),
    )
    .unwrap();
    assert_eq!(bed.read("/new"), "a\n");
    bed.converge(
        "line",
        &json!({"path": "/gone", "line": "a", "state": "absent"}),
    )
    .unwrap();
    bed.converge("block", &json!({"path": "/gone", "block": ""}))
        .unwrap();
    assert!(!bed.path("/gone").exists());
    bed.converge(
        "block",
        &json!({"path": "/made", "block": "a", "create": true}),
    )
    .unwrap();
}

#[test]
fn lines_that_are_not_text_are_kept() {
    let bed = Bed::new();
    std::fs::write(bed.path("/x"), b"\xff\xfe\na\n").unwrap();
    bed.converge("line", &json!({"path": "/x", "line": "b"}))
        .unwrap();
    assert_eq!(std::fs::read(bed.path("/x")).unwrap(), b"\xff\xfe\na\nb\n");
}

// === block ===

fn block(text: &str, content: &str) -> Result<String, String> {
    edited("block", json!({ "block": text }), content)
}

#[test]
fn markers_name_the_book_and_the_step() {
    let expected = "a\n# BEGIN web config\nx\ny\n# END web config\n";
    assert_eq!(block("x\ny\n", "a\n").unwrap(), expected);
    assert_eq!(block("x\ny", "a").unwrap(), expected);
    let changed = block("z", "a\n# BEGIN web config\nx\n# END web config\nb\n").unwrap();
    assert_eq!(changed, "a\n# BEGIN web config\nz\n# END web config\nb\n");
    let own = edited(
        "block",
        json!({"block": "x", "marker": "-- {mark} of {book}"}),
        "",
    )
    .unwrap();
    assert_eq!(own, "-- BEGIN of web\nx\n-- END of web\n");
    assert!(
        faults(
            "block",
            &json!({"path": "/x", "block": "x", "marker": "# mine"})
        )
        .contains("must contain `{mark}`")
    );
}

#[test]
fn an_empty_block_is_absent() {
    assert_eq!(
        block("", "a\n# BEGIN web config\nx\n# END web config\nb\n").unwrap(),
        "a\nb\n"
    );
    assert_eq!(block("", "a\n").unwrap(), "a\n");
}

#[test]
fn markers_that_are_missing_indented_doubled_or_turned_round_are_errors() {
    let check = |content: &str, expected: &str| {
        let error = block("x", content).unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert!(
            error.ends_with("; hint: correct the markers in the file by hand"),
            "{error}"
        );
    };
    let (begin, end) = ("# BEGIN web config\n", "# END web config\n");
    check(
        begin,
        "line 1 begins a block, but the marker `# END web config` is missing",
    );
    check(
        end,
        "line 1 ends a block, but the marker `# BEGIN web config` is missing",
    );
    check(&format!("  {begin}{end}"), "has spaces around it");
    check(
        &format!("{begin}{begin}{end}"),
        "stands in line 1 and in line 2",
    );
    check(&format!("{end}{begin}"), "stands before");
    let error = block("# END web config", "").unwrap_err();
    assert!(error.contains("the block contains the marker"), "{error}");
}

#[test]
fn a_block_is_put_where_it_is_asked_for_and_keeps_line_endings() {
    let after = edited("block", json!({"block": "x", "after": "^a"}), "a\r\nb\r\n").unwrap();
    assert_eq!(
        after,
        "a\r\n# BEGIN web config\r\nx\r\n# END web config\r\nb\r\n"
    );
    let before = edited("block", json!({"block": "x", "before": "^b"}), "a\nb\n").unwrap();
    assert_eq!(before, "a\n# BEGIN web config\nx\n# END web config\nb\n");
}
