//! Which files of a commit are files of variables: those that a Variable of the commit names for some node.

use camino::Utf8Path;
use portolan_fleet::is_fleet_object;
use portolan_trigger::VariablePath;
use portolan_yaml::Node;

/// The files of variables of a commit.
#[derive(Debug, Default)]
pub(crate) struct VariablePatterns(Vec<VariablePattern>);

/// The files that one path stands for.
#[derive(Debug)]
struct VariablePattern {
    /// From the root of the repository.
    path: VariablePath,
    is_optional: bool,
    /// Where it is written.
    at: String,
}

impl VariablePatterns {
    /// Takes what an object of a file names, if it is a Variable; says which paths lead nowhere.
    pub(crate) fn add(&mut self, object: &Node, file: &str, faults: &mut Vec<String>) {
        let is_variable = object.get("kind").and_then(Node::as_str) == Some("Variable");
        let files = object.at_path(&["spec", "files"]).and_then(Node::as_list);
        for named in files
            .into_iter()
            .flat_map(portolan_yaml::List::iter)
            .filter(|_| is_variable)
        {
            // What is no path is told when the object is read.
            let path = named
                .get("path")
                .and_then(Node::as_str)
                .map(VariablePath::parse);
            let Some(Ok(path)) = path else { continue };
            let at = format!("{file}:{}", named.at.line);
            match path.beside(file) {
                Err(why) => faults.push(format!("{at}: {why}")),
                Ok(path) => self.0.push(VariablePattern {
                    path,
                    is_optional: named.get("optional").and_then(Node::as_bool) == Some(true),
                    at,
                }),
            }
        }
    }

    /// Whether a file that was read is one of variables. One with an object in it is not.
    pub(crate) fn has(&self, file: &str, documents: &[Node]) -> bool {
        self.0.iter().any(|pattern| pattern.path.fits(file))
            && !documents.iter().any(is_fleet_object)
    }

    /// The files below a directory that every node needs, and that do not exist.
    pub(crate) fn missing(&self, directory: &str, has: &dyn Fn(&str) -> bool) -> Vec<String> {
        let missing = self.0.iter().filter_map(|pattern| {
            let nothing = serde_json::Value::Null;
            let file = pattern.path.of_node(&nothing, &nothing).ok()?;
            let inside = Utf8Path::new(&file);
            let is_read = inside.starts_with(directory.trim_matches('/'))
                && matches!(inside.extension(), Some("yaml" | "yml" | "json"));
            let is_missing = is_read && !pattern.is_optional && !has(&file);
            is_missing.then(|| format!("{}: there is no file `{file}`", pattern.at))
        });
        missing.collect()
    }
}
