//! Values that a chart never reads: spelling mistakes, keys of another version, keys below the wrong parent.
//!
//! Each value is changed, one at a time, and the chart rendered again. If the change has no effect, not even an
//! error, the value is not read. This needs nothing from the template engine, only one render per value, which takes
//! milliseconds for a parsed chart.

use std::sync::Arc;

use crate::chart::Chart;
use crate::render::{Error, Rendered, TemplateInput, template};
use crate::values::{Table, Tree};

/// The most values that are tried.
pub const MAX_TRIED: usize = 2_000;

/// The paths of given values that make no difference, in key order.
pub fn unread_values(chart: &Chart, input: &TemplateInput) -> Result<Vec<String>, Error> {
    // The schema would notice the changes, not the templates.
    let input = TemplateInput {
        skip_schema_validation: true,
        ..input.clone()
    };
    let before = template(chart, &input)?;
    let mut paths = Vec::new();
    leaves(&input.values, &mut Vec::new(), &mut paths);
    paths.truncate(MAX_TRIED);
    let unread = paths.into_iter().filter(|path| {
        let changed = TemplateInput {
            values: change(&input.values, path),
            budget: input.budget.renewed(),
            ..input.clone()
        };
        template(chart, &changed).is_ok_and(|after| same(&before, &after))
    });
    Ok(unread.map(|path| path.join(".")).collect())
}

fn same(a: &Rendered, b: &Rendered) -> bool {
    a.manifests == b.manifests
        && a.hooks == b.hooks
        && a.notes == b.notes
        && a.crds.len() == b.crds.len()
}

fn leaves(tree: &Tree, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    match tree {
        Tree::Table(table) if !table.is_empty() => {
            for (key, value) in table.iter() {
                path.push(key.to_string());
                leaves(value, path, found);
                path.pop();
            }
        }
        _ if !path.is_empty() => found.push(path.clone()),
        _ => {}
    }
}

fn change(tree: &Tree, path: &[String]) -> Tree {
    match (tree, path) {
        (Tree::Table(table), [key, rest @ ..]) => {
            let mut copy = Table::clone(table);
            if let Some(value) = copy.get_mut(key.as_str()) {
                *value = change(value, rest);
            }
            Tree::Table(Arc::new(copy))
        }
        (other, _) => changed(other),
    }
}

/// Another value of the same kind where that can show, of another kind where it cannot.
fn changed(value: &Tree) -> Tree {
    match value {
        Tree::Null => Tree::text("portolan-probe"),
        Tree::Bool(value) => Tree::Bool(!value),
        Tree::Int(value) => Tree::Int(value.wrapping_add(1)),
        Tree::Float(value) => Tree::Float(value + 1.0),
        Tree::Text(text) => Tree::text(format!("{text}-portolan-probe")),
        Tree::List(items) => {
            let mut items = Vec::clone(items);
            items.push(
                items
                    .first()
                    .cloned()
                    .unwrap_or(Tree::text("portolan-probe")),
            );
            Tree::List(Arc::new(items))
        }
        Tree::Table(_) => {
            let probe = ("portolan-probe".into(), Tree::text("portolan-probe"));
            Tree::Table(Arc::new(Table::from([probe])))
        }
    }
}
