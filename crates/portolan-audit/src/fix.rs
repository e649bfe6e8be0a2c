//! Rewrites manifests: changes the API version and the field names that a migration renames, if nothing else changes.
//!
//! A change is written only if the object keeps its meaning: fields whose default changed must be set, no removed
//! field may be used, and no field whose meaning changed. The surrounding text stays as it is.

use portolan_object::expand_lists;
use portolan_yaml::{Dialect, Entry, Node, parse_bytes};

use crate::checker::{Checker, head};
use crate::lifecycle::{Api, Stage, split};
use crate::migration::{Change, ChangeKind};
use crate::patch::Patch;
use crate::table;

/// Whether the object can be rewritten without a person.
pub(crate) fn is_mechanical(from: &Api, to: &Api, object: &Node) -> bool {
    from.kind == to.kind && renames(from, object).is_some()
}

impl Checker {
    /// The changes that bring the objects of a text to API versions the target serves; empty when there are none.
    pub fn fix(&self, text: &str) -> Patch {
        let mut patch = Patch::default();
        let lines: Vec<&str> = text.lines().collect();
        for document in parse_bytes(text.as_bytes(), Dialect::Helm).unwrap_or_default() {
            for object in expand_lists(document) {
                if let Some(change) = self.fix_object(&object, &lines) {
                    patch.add(change);
                }
            }
        }
        patch
    }

    fn fix_object(&self, object: &Node, lines: &[&str]) -> Option<Patch> {
        let (api_version, kind) = head(object)?;
        let (group, version) = split(api_version);
        let row = self.table.get(group, version, kind)?;
        let release = self.target.release_for(row).unwrap_or(table::NEWEST.into());
        if !matches!(row.stage(release), Stage::Removed | Stage::Deprecated) {
            return None;
        }
        let to = self.table.replacement_in(row, release)?;
        let served = self
            .table
            .row(&to)
            .is_none_or(|to| to.introduced.is_none_or(|came| came <= release));
        if !served || !is_mechanical(&row.api, &to, object) {
            return None;
        }
        let mut edit = Edit {
            lines,
            patch: Patch::default(),
        };
        let entry = object
            .as_map()?
            .iter()
            .find(|entry| entry.key.as_str() == "apiVersion")?;
        edit.swap(entry.value.at.line, api_version, &to.api_version())?;
        for rename in renames(&row.api, object)? {
            rename.write(&mut edit)?;
        }
        Some(edit.patch)
    }
}

/// A rename that the object needs.
enum Rename<'a> {
    /// A key gets another name.
    Key(&'a Entry, &'static str),
    /// `serviceName` and `servicePort` become `service.name` and `service.port`.
    Backend(&'a Node),
    /// A path of an Ingress says how it matches.
    PathType { path: &'a Node },
}

/// The renames the object needs; `None` when something else must change that needs a person.
fn renames<'a>(from: &Api, object: &'a Node) -> Option<Vec<Rename<'a>>> {
    let Some(migration) = table::migration(from) else {
        return Some(Vec::new());
    };
    let mut renames = Vec::new();
    for change in migration.changes {
        if from.kind == "Ingress" && change.path != "spec.backend" {
            continue;
        }
        match change.kind {
            ChangeKind::Renamed => renames.extend(rename(change, object)?),
            ChangeKind::Removed | ChangeKind::Forbidden | ChangeKind::Limited
                if is_there(change, object) =>
            {
                return None;
            }
            ChangeKind::Required | ChangeKind::Default if !is_there(change, object) => return None,
            ChangeKind::Semantics if !keeps_meaning(change, object) => return None,
            _ => {}
        }
    }
    if from.kind == "Ingress" {
        renames.extend(ingress(object)?);
    }
    Some(renames)
}

/// A key that only changes its last step can be renamed in place.
fn rename<'a>(change: &Change, object: &'a Node) -> Option<Vec<Rename<'a>>> {
    let path = change.path.replace("[*]", "[]");
    let mut entries = Vec::new();
    find(object, &path, &mut entries);
    if entries.is_empty() {
        return Some(Vec::new());
    }
    let parent = |path: &str| {
        path.rsplit_once('.')
            .map_or(String::new(), |(parent, _)| parent.to_owned())
    };
    let new = change.to.rsplit('.').next()?;
    let simple = parent(change.path) == parent(change.to) && !change.to.contains(' ');
    simple.then(|| {
        entries
            .into_iter()
            .map(|entry| Rename::Key(entry, new))
            .collect()
    })
}

fn is_there(change: &Change, object: &Node) -> bool {
    let path = change.path.replace("[*]", "[]");
    let path = path.split(": ").next().unwrap_or_default();
    let mut entries = Vec::new();
    find(object, path, &mut entries);
    // Of the items of a list each one must have it.
    match path.split_once("[].") {
        Some((list, _)) => {
            let mut lists = Vec::new();
            find(object, list, &mut lists);
            let items = lists
                .iter()
                .filter_map(|entry| entry.value.as_list())
                .map(portolan_yaml::List::len);
            entries.len() >= items.sum::<usize>().max(1)
        }
        None => !entries.is_empty(),
    }
}

/// The only known change of meaning: an empty selector of a `PodDisruptionBudget`.
fn keeps_meaning(change: &Change, object: &Node) -> bool {
    let path = change.path.split(": ").next().unwrap_or_default();
    let mut entries = Vec::new();
    find(object, path, &mut entries);
    entries
        .iter()
        .any(|entry| entry.value.as_map().is_some_and(|map| !map.is_empty()))
}

/// Every entry at a path with `[]` for the items of lists. Paths are ours and short, so the recursion is.
fn find<'a>(node: &'a Node, path: &str, found: &mut Vec<&'a Entry>) {
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let (key, each) = step
        .strip_suffix("[]")
        .map_or((step, false), |key| (key, true));
    let Some(map) = node.as_map() else { return };
    for entry in map.iter().filter(|entry| entry.key.as_str() == key) {
        if rest.is_empty() {
            found.push(entry);
        } else if each {
            let items = entry
                .value
                .as_list()
                .into_iter()
                .flat_map(|list| list.iter());
            items.for_each(|item| find(item, rest, found));
        } else {
            find(&entry.value, rest, found);
        }
    }
}

// === Ingress ===

fn ingress(object: &Node) -> Option<Vec<Rename<'_>>> {
    let mut renames = Vec::new();
    let mut paths = Vec::new();
    find(object, "spec.rules[].http.paths", &mut paths);
    for path in paths
        .iter()
        .filter_map(|entry| entry.value.as_list())
        .flat_map(|list| list.iter())
    {
        backend(path.get("backend")?, &mut renames)?;
        if path.get("pathType").is_none() {
            renames.push(Rename::PathType { path });
        }
    }
    if let Some(default) = object.at_path(&["spec", "backend"]) {
        backend(default, &mut renames)?;
    }
    Some(renames)
}

fn backend<'a>(backend: &'a Node, renames: &mut Vec<Rename<'a>>) -> Option<()> {
    let map = backend.as_map()?;
    if map.contains_key("resource") || map.contains_key("service") {
        return Some(());
    }
    let known = |entry: &Entry| ["serviceName", "servicePort"].contains(&entry.key.as_str());
    if map.len() != 2 || !map.iter().all(known) {
        return None;
    }
    renames.push(Rename::Backend(backend));
    Some(())
}

// === Lines ===

/// Changes to the lines of a text.
struct Edit<'a> {
    lines: &'a [&'a str],
    patch: Patch,
}

impl Rename<'_> {
    /// Writes the change; `None` when the text is laid out in a way that is not changed line by line.
    fn write(&self, edit: &mut Edit<'_>) -> Option<()> {
        match self {
            Self::Key(entry, new) => {
                let old = entry.key.as_str();
                edit.swap(entry.key.at.line, &format!("{old}:"), &format!("{new}:"))
            }
            Self::Backend(node) => edit.backend(node),
            Self::PathType { path } => edit.path_type(path),
        }
    }
}

impl Edit<'_> {
    /// The last of the lines that stand for this one now.
    fn current(&self, line: u32) -> Option<String> {
        let changed = self
            .patch
            .line(line as usize)
            .and_then(|lines| lines.last().cloned());
        changed.or_else(|| {
            self.lines
                .get(line.checked_sub(1)? as usize)
                .map(|line| (*line).to_owned())
        })
    }

    /// Replaces a word that stands exactly once in a line.
    fn swap(&mut self, line: u32, old: &str, new: &str) -> Option<()> {
        let text = self.current(line)?;
        if text.matches(old).count() != 1 {
            return None;
        }
        self.patch
            .replace(line as usize, vec![text.replacen(old, new, 1)]);
        Some(())
    }

    fn backend(&mut self, backend: &Node) -> Option<()> {
        let map = backend.as_map()?;
        let (name, port) = (entry(map, "serviceName")?, entry(map, "servicePort")?);
        let own_line = |entry: &Entry| {
            let text = self.lines.get(entry.key.at.line as usize - 1)?;
            let start = text.len() - text.trim_start().len();
            (start + 1 == entry.key.at.column as usize).then_some(" ".repeat(start))
        };
        let indent = own_line(name)?;
        own_line(port)?;
        let value = |entry: &Entry| {
            let text = self.lines.get(entry.value.at.line as usize - 1)?;
            (entry.value.at.line == entry.key.at.line)
                .then(|| text.split_once(':'))?
                .map(|(_, value)| value.trim().to_owned())
        };
        let kind = if port.value.as_i64().is_some() {
            "number"
        } else {
            "name"
        };
        let (name_value, port_value) = (value(name)?, value(port)?);
        let first = name.key.at.line.min(port.key.at.line);
        let second = name.key.at.line.max(port.key.at.line);
        self.patch.replace(
            first as usize,
            vec![
                format!("{indent}service:"),
                format!("{indent}  name: {name_value}"),
                format!("{indent}  port:"),
                format!("{indent}    {kind}: {port_value}"),
            ],
        );
        self.patch.replace(second as usize, Vec::new());
        Some(())
    }

    /// Adds the type after the last line of the path's backend, in the column of the path's keys.
    fn path_type(&mut self, path: &Node) -> Option<()> {
        let map = path.as_map()?;
        let backend = entry(map, "backend")?;
        let inner = backend.value.as_map()?;
        if backend.value.at.line == backend.key.at.line {
            return None;
        }
        let last = inner.iter().map(|entry| entry.value.at.line).max()?;
        let indent = " ".repeat(backend.key.at.column.checked_sub(1)? as usize);
        let mut lines = match self.patch.line(last as usize) {
            Some(lines) => lines.clone(),
            None => vec![(*self.lines.get(last.checked_sub(1)? as usize)?).to_owned()],
        };
        lines.push(format!("{indent}pathType: ImplementationSpecific"));
        self.patch.replace(last as usize, lines);
        Some(())
    }
}

fn entry<'a>(map: &'a portolan_yaml::Map, key: &str) -> Option<&'a Entry> {
    map.iter().find(|entry| entry.key.as_str() == key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    fn fixed(text: &str) -> String {
        let checker = Checker::new(Target::kubernetes("1.32".parse().unwrap()));
        checker.fix(text).apply(text)
    }

    #[test]
    fn the_version_alone_changes_when_nothing_else_does() {
        assert_eq!(
            fixed(
                "# keep\napiVersion: batch/v1beta1   # old\nkind: CronJob\n---\napiVersion: v1\nkind: Pod\n"
            ),
            "# keep\napiVersion: batch/v1   # old\nkind: CronJob\n---\napiVersion: v1\nkind: Pod\n"
        );
    }

    #[test]
    fn an_ingress_is_rewritten_with_its_backends() {
        let old = "\
apiVersion: networking.k8s.io/v1beta1
kind: Ingress
metadata:
  name: web
spec:
  backend:
    serviceName: fallback
    servicePort: http
  rules:
  - http:
      paths:
      - path: /
        backend:
          serviceName: web # ours
          servicePort: 80
";
        let new = "\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
spec:
  defaultBackend:
    service:
      name: fallback
      port:
        name: http
  rules:
  - http:
      paths:
      - path: /
        backend:
          service:
            name: web # ours
            port:
              number: 80
        pathType: ImplementationSpecific
";
        assert_eq!(fixed(old), new);
    }

    #[test]
    fn what_would_mean_something_else_is_left_alone() {
        for text in [
            "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nspec: {selector: {}}\n",
            "apiVersion: extensions/v1beta1\nkind: Deployment\nspec: {template: {}}\n",
            "apiVersion: admissionregistration.k8s.io/v1beta1\nkind: ValidatingWebhookConfiguration\nwebhooks: [{name: a}]\n",
            "apiVersion: policy/v1beta1\nkind: PodSecurityPolicy\n",
        ] {
            assert_eq!(fixed(text), text);
        }
        let selected = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nspec: {selector: {matchLabels: {a: b}}}\n";
        assert!(fixed(selected).starts_with("apiVersion: policy/v1\n"));
    }
}
