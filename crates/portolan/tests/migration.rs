//! What the table for users of flux-local and flate promises, tried on the example repository.

mod portolan;

use portolan::portolan_in;
use portolan::repository::HARBOR;

const DOCUMENT: &str = include_str!("../../../docs/get-started.md");

/// The options of a row and the commands that take them.
fn rows() -> Vec<(Vec<String>, Vec<String>)> {
    let lines = DOCUMENT.lines();
    let table = lines.skip_while(|line| !line.starts_with("| you know it from flux-local"));
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(quoted);
        (
            cells.next().expect("the options"),
            cells.next().expect("the commands"),
        )
    })
    .collect()
}

/// What stands between backticks.
fn quoted(cell: &str) -> Vec<String> {
    let parts = cell.split('`').skip(1).step_by(2);
    parts.map(str::to_owned).collect()
}

/// The option with a value in place of the word that stands for one.
fn arguments(option: &str, directory: &str) -> Vec<String> {
    let file = format!("{directory}/answer");
    let values = [
        ("DIR", "clusters/production"),
        ("NAME", "flux-system"),
        ("NAME=DIR", "flux-system/flux-system=."),
        ("KIND", "Secret"),
        ("KEY", "harbor.example/cluster"),
        ("FILE", &file),
    ];
    let value = |word: &str| {
        let known = values.iter().find(|(name, _)| *name == word);
        let (_, value) = known.expect("the word stands for something that is known here");
        (*value).to_owned()
    };
    let mut words = option.split(' ');
    let name = words.next().expect("an option has a name").to_owned();
    std::iter::once(name).chain(words.map(value)).collect()
}

#[test]
fn every_option_of_the_table_is_taken_by_every_command_it_names() {
    let rows = rows();
    assert!(rows.len() > 6, "the table is there: {rows:?}");
    let directory = tempfile::tempdir().expect("a directory can be made");
    let directory = directory.path().to_str().expect("a path of letters");
    for (options, commands) in rows {
        assert!(!options.is_empty() && !commands.is_empty(), "{options:?}");
        for (option, command) in options
            .iter()
            .flat_map(|option| commands.iter().map(move |command| (option, command)))
        {
            let what = match command.as_str() {
                "get" => vec!["get", "objects"],
                "diff" => vec!["diff", "--path-orig", "."],
                command => vec![command],
            };
            let own = arguments(option, directory);
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            let answer = portolan_in(HARBOR, &[&what[..], &own[..]].concat());
            let told = &answer.stderr;
            let is_refused = told.contains("unexpected argument") || told.contains("Usage:");
            assert!(
                !is_refused && answer.code <= 2,
                "{command} {option}: {answer}"
            );
            // There is no definition in the example, which `--only-crds` rightly says.
            if option != "--only-crds" && option != "--path DIR" && option != "-p DIR" {
                assert!(answer.code <= 1, "{command} {option}: {answer}");
            }
        }
    }
}
