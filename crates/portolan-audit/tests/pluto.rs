//! The page that says where the table differs from pluto's, held against the table.

use portolan_audit::{Api, Release, Table};

const PAGE: &str = include_str!("../../../docs/audit-table.md");

/// A row of the page: an API version, kinds, what pluto says of them, what we say.
struct Row {
    api_version: &'static str,
    kinds: Vec<&'static str>,
    pluto: &'static str,
    here: &'static str,
}

fn rows() -> Vec<Row> {
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [api_version, kinds, pluto, here, why] = cells[..] else {
            return None;
        };
        (api_version.contains('/') && !why.is_empty()).then(|| Row {
            api_version,
            kinds: kinds.split(", ").collect(),
            pluto,
            here,
        })
    };
    PAGE.lines().filter_map(row).collect()
}

#[test]
fn what_the_page_says_of_the_table_is_what_the_table_says() {
    let table = Table::default();
    let release =
        |release: Option<Release>| release.map_or("-".to_owned(), |r| r.minor().to_string());
    for row in rows() {
        let (group, version) = row.api_version.rsplit_once('/').expect("a group");
        for kind in &row.kinds {
            let known = table.get(group, version, kind).expect("a row of the table");
            let replacement = known.replacement.as_ref().map(Api::api_version);
            let here = format!(
                "{}, {}, {}",
                release(known.deprecated),
                release(known.removed),
                replacement.as_deref().unwrap_or("-")
            );
            assert_eq!(here, row.here, "{} {kind}", row.api_version);
            assert_ne!(
                row.here, row.pluto,
                "{} {kind} does not differ",
                row.api_version
            );
        }
    }
}

/// The numbers at the top of the page are those of its rows.
#[test]
fn every_difference_has_its_row() {
    let differ: usize = rows().iter().map(|row| row.kinds.len()).sum();
    let head = format!("| 112 | {} | {differ} | 3 |", 112 - 3 - differ);
    assert!(PAGE.contains(&head), "{head}");
}
