//! Rules of lists.

use std::collections::HashMap;

use portolan_gotmpl::Value;

use super::super::super::subschema::Rest;
use super::super::compile::Contains;
use super::super::draft::Draft;
use super::super::number::count;
use super::{Checker, Work};
use crate::values::json;

impl Checker<'_> {
    pub(super) fn check_list(&mut self, work: &mut Work<'_>, items: &[Value]) {
        let rules = &work.node.list;
        let got = items.len();
        if let Some(min) = rules.min_items.filter(|min| got < *min) {
            self.fail(
                work,
                format!("minItems: got {}, want {}", count(got), count(min)),
            );
        }
        if let Some(max) = rules.max_items.filter(|max| got > *max) {
            self.fail(
                work,
                format!("maxItems: got {}, want {}", count(got), count(max)),
            );
        }
        if rules.unique_items
            && let Some((first, second)) = equal_items(items)
        {
            let (first, second) = (count(first), count(second));
            self.fail(work, format!("items at {first} and {second} are equal"));
        }
        self.check_items(work, items);
        if let Some(contains) = &rules.contains {
            self.check_contains(work, items, contains);
        }
    }

    fn check_items(&mut self, work: &mut Work<'_>, items: &[Value]) {
        let rules = &work.node.list;
        let leading = rules.leading.len().min(items.len());
        let (first, others) = items.split_at(leading);
        for (index, (item, schema)) in first.iter().zip(&rules.leading).enumerate() {
            let failure = self.below(work, *schema, item, &index.to_string()).err();
            work.failures.extend(failure);
        }
        match rules.rest {
            Some(Rest::Allowed(false)) if !others.is_empty() => {
                let others = count(others.len());
                self.fail(work, format!("last {others} additionalItem(s) not allowed"));
            }
            Some(Rest::Schema(schema)) => {
                // The library counts these from 0 again.
                for (index, item) in others.iter().enumerate() {
                    let failure = self.below(work, schema, item, &index.to_string()).err();
                    work.failures.extend(failure);
                }
            }
            Some(Rest::Allowed(_)) | None => {}
        }
    }

    fn check_contains(&mut self, work: &mut Work<'_>, items: &[Value], contains: &Contains) {
        let mut failures = Vec::new();
        let mut fitting = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match self.below(work, contains.schema, item, &index.to_string()) {
                Err(failure) => failures.push(failure),
                Ok(()) => {
                    fitting.push(index.to_string());
                    if work.node.draft >= Draft::Of2020 {
                        work.unevaluated.items.remove(&index);
                    }
                }
            }
        }
        let found = || {
            let (many, places) = (count(fitting.len()), fitting.join(" "));
            format!("items required to match contains schema, but matched {many} items at {places}")
        };
        match contains.min {
            Some(min) if fitting.len() < min => {
                let told = if fitting.is_empty() {
                    "items required to match contains schema, but none matched".to_owned()
                } else {
                    found()
                };
                self.fail_because(work, &format!("min {} {told}", count(min)), failures);
            }
            None if fitting.is_empty() => {
                self.fail_because(work, "no items match contains schema", failures);
            }
            _ => {}
        }
        if let Some(max) = contains.max.filter(|max| fitting.len() > *max) {
            self.fail(work, format!("max {} {}", count(max), found()));
        }
    }
}

/// The first two items that are equal: the place of the earlier, and that of the later.
fn equal_items(items: &[Value]) -> Option<(usize, usize)> {
    let mut seen = HashMap::new();
    items.iter().enumerate().find_map(|(index, item)| {
        let earlier = *seen.entry(json::text(item)).or_insert(index);
        (earlier != index).then_some((earlier, index))
    })
}
