//! Tests that the compiled-in table is complete: row by row, and compared with the official guide.

use std::collections::BTreeSet;

use super::*;

#[test]
fn no_api_has_two_rows_and_rows_are_sorted() {
    let keys: Vec<_> = rows::LIFECYCLES.iter().map(|row| row.api.key()).collect();
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(keys.len() > 900, "{}", keys.len());
}

#[test]
fn every_chain_of_replacements_ends_at_a_live_version() {
    let table = Table::default();
    for row in rows::LIFECYCLES {
        let Some(replacement) = &row.replacement else {
            continue;
        };
        let mut seen = BTreeSet::from([row.api.clone()]);
        let mut next = replacement.clone();
        while let Some(row) = table.row(&next) {
            assert!(
                seen.insert(next.clone()),
                "{} is replaced in a circle",
                row.api
            );
            match &row.replacement {
                Some(after)
                    if row
                        .removed
                        .is_some_and(|gone| !row.is_kubernetes() || gone <= NEWEST.into()) =>
                {
                    next = after.clone();
                }
                _ => break,
            }
        }
        if let Some(end) = table.row(&next).filter(|end| end.is_kubernetes()) {
            assert_ne!(
                end.stage(NEWEST.into()),
                Stage::Removed,
                "{} ends at {}",
                row.api,
                end.api
            );
        }
    }
}

#[test]
fn an_api_comes_before_it_is_deprecated_and_goes_last() {
    for row in rows::LIFECYCLES {
        if let (Some(came), Some(gone)) = (row.introduced, row.removed) {
            assert!(came <= gone, "{}", row.api);
        }
        if let (Some(deprecated), Some(gone)) = (row.deprecated, row.removed) {
            assert!(deprecated <= gone, "{}", row.api);
        }
    }
}

#[test]
fn the_newest_release_known_is_the_newest_that_introduced_anything() {
    let kubernetes = rows::LIFECYCLES.iter().filter(|row| row.is_kubernetes());
    let newest = kubernetes.filter_map(|row| row.introduced).max();
    assert!(newest <= Some(NEWEST.plus(1).into()), "{newest:?}");
    assert!(newest >= Some(NEWEST.into()), "{newest:?}");
}

#[test]
fn rules_add_rows_and_override_them() {
    let mut rule = Table::default()
        .get("apps", "v1", "Deployment")
        .unwrap()
        .clone();
    rule.removed = Some(Release::new(1, 30, 0));
    let table = Table::with(vec![rule]);
    assert_eq!(
        table.get("apps", "v1", "Deployment").unwrap().removed,
        Some(Release::new(1, 30, 0))
    );
    assert_eq!(table.rows().count(), rows::LIFECYCLES.len());
    assert_eq!(
        table.get("apps", "v1beta1", "Deployment").unwrap().removed,
        Some(Release::new(1, 16, 0))
    );
}
