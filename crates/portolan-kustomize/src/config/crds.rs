//! `OpenAPI` definitions named in `crds`: extensions on their properties say which fields carry labels, annotations,
//! names or references.

use portolan_budget::Budget;
use portolan_yaml::{Node, Text};

use super::{BackReference, Config, FieldSpec, Lists, Section};
use crate::error::Result;
use crate::resource::id::Gvk;

/// Definitions refer to each other; deeper than this is a circle.
const MAX_DEPTH: usize = 64;

/// Reads what a document of definitions adds.
pub(crate) fn read_crds(document: &Node, budget: &Budget) -> Result<Config> {
    let mut lists = Lists::default();
    for entry in document.as_map().into_iter().flatten() {
        let name = entry.key.as_str();
        let is_object =
            |field| properties(&entry.value).is_some_and(|map| map.get(field).is_some());
        if is_object("kind") && is_object("apiVersion") && is_object("metadata") {
            let kind = name.rsplit('.').next().unwrap_or(name);
            let gvk = Gvk {
                kind: kind.into(),
                ..Gvk::default()
            };
            Walk {
                document,
                gvk,
                lists: &mut lists,
                budget,
            }
            .definition(name, &mut Vec::new())?;
        }
    }
    Ok(Config::Custom(Box::new(lists)))
}

fn properties(definition: &Node) -> Option<&Node> {
    definition
        .at_path(&["Schema", "properties"])
        .or_else(|| definition.at_path(&["schema", "properties"]))
}

struct Walk<'a> {
    document: &'a Node,
    gvk: Gvk,
    lists: &'a mut Lists,
    budget: &'a Budget,
}

impl<'a> Walk<'a> {
    fn definition(&mut self, name: &str, path: &mut Vec<&'a str>) -> Result<()> {
        if path.len() > MAX_DEPTH {
            return Ok(());
        }
        let Some(map) = self
            .document
            .get(name)
            .and_then(properties)
            .and_then(Node::as_map)
        else {
            return Ok(());
        };
        // Definitions that refer to each other twice double with every level.
        self.budget.step(map.len() as u64 + 1)?;
        for entry in map {
            path.push(entry.key.as_str());
            self.property(&entry.value, path)?;
            path.pop();
        }
        Ok(())
    }

    fn property(&mut self, property: &'a Node, path: &mut Vec<&'a str>) -> Result<()> {
        let extension = |name: &str| property.get(name).and_then(Node::as_str);
        let sections = [
            ("x-kubernetes-annotation", Section::CommonAnnotations),
            ("x-kubernetes-label-selector", Section::CommonLabels),
            ("x-kubernetes-identity", Section::NamePrefix),
        ];
        for (name, section) in sections {
            if extension(name).is_some() {
                let spec = self.spec(path);
                self.lists.add(section, spec, self.budget)?;
            }
        }
        let version = extension("x-kubernetes-object-ref-api-version");
        if let (Some(version), Some(kind)) = (version, extension("x-kubernetes-object-ref-kind")) {
            path.push(extension("x-kubernetes-object-ref-name-key").unwrap_or("name"));
            let target = Gvk {
                group: Text::default(),
                version: version.into(),
                kind: kind.into(),
            };
            let referrers = vec![self.spec(path)];
            self.lists
                .add_reference(BackReference { target, referrers }, self.budget)?;
            path.pop();
        }
        match extension("$ref") {
            Some(reference) => self.definition(reference, path),
            None => Ok(()),
        }
    }

    fn spec(&self, path: &[&str]) -> FieldSpec {
        FieldSpec {
            gvk: self.gvk.clone(),
            path: path.join("/").into(),
            create: false,
        }
    }
}
