//! The files that a TaskBook names, found without reading any of them.

use std::collections::BTreeSet;

use portolan_modules::MODULES;
use serde_json::{Map, Value};

use crate::compile::{file_parameters, is_book_file};
use crate::text::is_template;

/// Returns the files beside a book that its steps name: templates, sources, scripts, keys and included books. Names that are only
/// known in a run are left out. `spec` is that of the TaskBook.
pub fn named_files(spec: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for list in ["steps", "handlers"] {
        steps(spec.get(list), &mut found);
    }
    if let Some(probe) = spec.pointer("/continue/probe").and_then(Value::as_object) {
        step(probe, &mut found);
    }
    found
}

fn steps(list: Option<&Value>, found: &mut BTreeSet<String>) {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    for one in list.filter_map(Value::as_object) {
        step(one, found);
    }
}

fn step(step: &Map<String, Value>, found: &mut BTreeSet<String>) {
    for list in ["steps", "rescue", "always"] {
        steps(step.get(list), found);
    }
    if let Some(include) = step.get("include").filter(|one| one.get("git").is_none()) {
        note(include.get("path"), found);
    }
    for module in MODULES {
        let parameters = step.get(module.name).and_then(Value::as_object);
        for name in file_parameters(module.name) {
            note(parameters.and_then(|all| all.get(*name)), found);
        }
    }
}

fn note(path: Option<&Value>, found: &mut BTreeSet<String>) {
    let path = path.and_then(Value::as_str);
    if let Some(path) = path.filter(|path| is_book_file(path) && !is_template(path)) {
        found.insert(path.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_steps_are_found_and_paths_of_nodes_are_not() {
        let spec = serde_json::json!({
            "steps": [
                {"name": "a", "file": {"path": "/a", "template": "a.j2"}},
                {"name": "b", "file": {"path": "/b", "source": "/from/the/node"}},
                {"name": "c", "archive": {"source": "https://example.com/x.tar", "into": "/c"}},
                {"name": "d", "steps": [{"name": "e", "command": {"script": "e.sh"}}],
                    "rescue": [{"name": "f", "include": {"path": "f.yaml"}}]},
                {"name": "g", "include": {"git": "https://git.example/x", "ref": "v1", "path": "g.yaml"}},
                {"name": "h", "mount": {"source": "UUID=0a", "path": "/h"}},
                {"name": "i", "file": {"path": "/i", "source": "{{ inputs.i }}"}},
            ],
            "handlers": [{"name": "j", "file": {"path": "/j", "source": "j"}}],
        });
        let found: Vec<String> = named_files(&spec).into_iter().collect();
        assert_eq!(found, ["a.j2", "e.sh", "f.yaml", "j"]);
    }
}
