//! `buildMetadata`: annotations that tell where a resource comes from and what changed it.

use portolan_yaml::{Node, Text};

use crate::error::Result;
use crate::load::fetch::RepoSpec;
use crate::resource::{ORIGIN, Resource, TRANSFORMATIONS};
use crate::value::yamltext::to_block_yaml;

/// A place as the annotations tell it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Provenance {
    path: String,
    repository: String,
    reference: String,
    configured_in: String,
    configured_by: Vec<(&'static str, Text)>,
}

impl Provenance {
    /// The place of something that is named here.
    pub(crate) fn join(&self, path: &str) -> Self {
        let mut joined = self.clone();
        let mut path = path;
        let spec = RepoSpec::parse(path);
        if let Some(spec) = &spec {
            joined.repository.clone_from(&spec.clone);
            joined.reference.clone_from(&spec.reference);
            joined.path.clear();
            path = &spec.path;
        }
        joined.path = join_paths(&joined.path, path);
        joined
    }

    /// A built-in generator or transformer of the kustomization file here.
    pub(crate) fn builtin(&self, file: &str, kind: &str) -> Self {
        let by = vec![
            ("apiVersion", Text::from_static("builtin")),
            ("kind", kind.into()),
        ];
        self.configured(join_paths(&self.path, file), by)
    }

    /// A generator or transformer that is a resource itself.
    pub(crate) fn plugin(&self, resource: &Resource) -> Self {
        let gvk = resource.gvk();
        let all = [
            ("apiVersion", Text::from(gvk.api_version())),
            ("kind", gvk.kind.clone()),
            ("name", resource.name()),
            ("namespace", resource.namespace()),
        ];
        let by = all
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect();
        self.configured(self.path.clone(), by)
    }

    fn configured(&self, configured_in: String, configured_by: Vec<(&'static str, Text)>) -> Self {
        Self {
            path: String::new(),
            repository: self.repository.clone(),
            reference: self.reference.clone(),
            configured_in,
            configured_by,
        }
    }

    /// Notes the origin, unless there is one.
    pub(crate) fn note_origin(&self, resource: &mut Resource) -> Result<()> {
        if resource.annotation(ORIGIN).is_some() {
            return Ok(());
        }
        self.set_origin(resource)
    }

    /// Notes the origin in place of any other.
    pub(crate) fn set_origin(&self, resource: &mut Resource) -> Result<()> {
        resource.set_annotation(ORIGIN, to_block_yaml(&self.as_node()))
    }

    /// Notes a transformation, or an origin where there is none.
    pub(crate) fn note_transformation(&self, resource: &mut Resource) -> Result<()> {
        if resource.annotation(ORIGIN).is_none() {
            return self.set_origin(resource);
        }
        let mut list = Node::list();
        if let Some(list) = list.as_list_mut() {
            list.items_mut().push(self.as_node());
        }
        let known = resource.annotation(TRANSFORMATIONS).unwrap_or_default();
        let all = format!("{known}{}", to_block_yaml(&list));
        resource.set_annotation(TRANSFORMATIONS, all)
    }

    fn as_node(&self) -> Node {
        let mut node = Node::map();
        let Some(map) = node.as_map_mut() else {
            return node;
        };
        let texts = [
            ("path", &self.path),
            ("repo", &self.repository),
            ("ref", &self.reference),
            ("configuredIn", &self.configured_in),
        ];
        for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            map.insert(name, Node::string(text.as_str()));
        }
        if !self.configured_by.is_empty() {
            let mut by = Node::map();
            for (name, value) in &self.configured_by {
                if let Some(by) = by.as_map_mut() {
                    by.insert(*name, Node::string(value.clone()));
                }
            }
            map.insert("configuredBy", by);
        }
        node
    }
}

/// Joins and cleans as Go's `filepath.Join` does: `..` at the start stays.
fn join_paths(base: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_keep_their_dots() {
        assert_eq!(join_paths("", "../base"), "../base");
        assert_eq!(join_paths("../base", "a.yaml"), "../base/a.yaml");
        assert_eq!(join_paths("../base", "../x"), "../x");
    }
}
