//! Variables whose values are in files of the commit that they come from: read when a run is made, at that commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::Utf8Path;
use portolan_digest::Digest;
use portolan_fleet::{FileVariable, read_variable_file};
use portolan_kinds::KindObject;
use portolan_kinds::wire::Source;
use portolan_trigger::{VariablePath, VariableScope, VariableSource};
use portolan_vfs::{Vfs, VfsError};
use serde_json::Map;

use super::request::about;
use super::target::FleetView;
use super::variable_sources::{ScopedSource, SourceNodes, empty_source};
use super::variables::Variables;
use crate::error::ApiError;
use crate::server::ApiServer;

/// The most different files of a run, and their bytes together.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: usize = 64 << 20;

/// The most faults that are told at once.
const MAX_FAULTS: usize = 10;

/// A Variable whose values are in files.
#[derive(Clone)]
pub(super) struct FileSource {
    variable: Arc<KindObject>,
    nodes: SourceNodes,
    commit: FileCommit,
    /// From the root of the repository, and whether it can be missing.
    paths: Vec<(VariablePath, bool)>,
    /// Why none of them can be read.
    fault: Option<String>,
}

/// Where files are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct FileCommit {
    repository: String,
    commit: String,
}

/// Files that were read; `None` for one that does not exist.
#[derive(Default)]
pub(super) struct ReadFiles(BTreeMap<(FileCommit, String), Option<ReadFile>>);

/// A file that was read.
struct ReadFile {
    /// Stands for its content.
    digest: String,
    variables: Vec<FileVariable>,
}

impl FileSource {
    /// `None` if the values of a Variable are somewhere else.
    pub(super) fn of(variable: &Arc<KindObject>) -> Option<Self> {
        let files = variable.spec.get("files")?.as_array()?;
        let source = variable.metadata.source.clone();
        let mut fault = source
            .is_none()
            .then(|| "it comes from no Repository, so there are no files beside it".to_owned());
        let source = source.unwrap_or_default();
        let mut paths = Vec::with_capacity(files.len());
        for file in files {
            let path = VariablePath::parse(file["path"].as_str().unwrap_or_default());
            match path.and_then(|path| path.beside(source.path())) {
                Ok(path) => paths.push((path, file["optional"] == true)),
                Err(why) => fault = fault.or(Some(why)),
            }
        }
        Some(Self {
            variable: Arc::clone(variable),
            nodes: SourceNodes::of(variable),
            commit: FileCommit {
                repository: source.repository().to_owned(),
                commit: source.commit().to_owned(),
            },
            paths,
            fault,
        })
    }

    /// The paths of its files for a node, and whether each can be missing.
    fn paths_for(&self, node: &KindObject) -> Result<Vec<(String, bool)>, String> {
        let shown = |why: &str| format!("node {}: {}: {why}", node.name(), self.shown());
        if let Some(fault) = &self.fault {
            return Err(shown(fault));
        }
        let facts = node.status.get("facts").cloned().unwrap_or_default();
        let seen = about(node);
        let paths = self.paths.iter().map(|(path, is_optional)| {
            let path = path.of_node(&facts, &seen).map_err(|why| shown(&why))?;
            Ok((path, *is_optional))
        });
        paths.collect()
    }

    fn shown(&self) -> String {
        format!("Variable {}", self.variable.name())
    }
}

impl Variables {
    /// The values of files that concern a node, each variable by itself: so is told in which line it is.
    pub(super) fn values_of_files(
        &self,
        node: &KindObject,
        groups: &BTreeSet<&str>,
    ) -> Result<Vec<ScopedSource>, ApiError> {
        let mut sources = Vec::new();
        if self.needs_no_files() {
            return Ok(sources);
        }
        let files = self.files.iter();
        for of in files.filter(|of| of.nodes.has(node.name(), groups)) {
            let paths = of.paths_for(node).map_err(ApiError::bad_request)?;
            for (position, ((path, _), (template, _))) in
                paths.into_iter().zip(&of.paths).enumerate()
            {
                let key = (of.commit.clone(), path);
                let Some(Some(file)) = self.read.0.get(&key) else {
                    continue;
                };
                let path = key.1;
                let is_wanted = |name: &String| match &self.wanted {
                    Some(wanted) => wanted.contains(name),
                    None => true,
                };
                let variables = file.variables.iter();
                for one in variables.filter(|one| is_wanted(&one.name)) {
                    let name = format!("{} ({path}:{})", of.shown(), one.line);
                    let mut source = VariableSource {
                        position,
                        values: Map::from_iter([(one.name.clone(), one.value.clone())]),
                        ..empty_source(&of.variable, name, &of.nodes)
                    };
                    if template.is_of_one_node() {
                        source.scope = VariableScope::Node;
                    }
                    let generation = of.variable.metadata.generation();
                    sources.push(ScopedSource {
                        nodes: SourceNodes::All,
                        source,
                        is_computed: false,
                        produced: None,
                        secrets: BTreeMap::new(),
                        written_at: Some((path.clone(), one.line)),
                        pins: vec![
                            (of.shown(), format!("generation {generation}")),
                            (
                                format!("file {path} of {}", of.shown()),
                                file.digest.clone(),
                            ),
                        ],
                    });
                }
            }
        }
        Ok(sources)
    }

    /// Whether nobody asks for a variable that could be in a file.
    /// A Variable whose files concern a node and were not read, for a book that uses variables.
    pub(super) fn unread_for(&self, view: &FleetView, node: &KindObject) -> Option<String> {
        if !self.read.0.is_empty() || self.needs_no_files() {
            return None;
        }
        let groups = view.groups_of(node);
        let mut files = self.files.iter();
        let found = files.find(|of| of.nodes.has(node.name(), &groups));
        found.map(FileSource::shown)
    }

    fn needs_no_files(&self) -> bool {
        self.wanted.as_ref().is_some_and(BTreeSet::is_empty)
    }
}

impl ApiServer {
    /// Reads the files of variables that concern nodes.
    pub(super) async fn read_variable_files(
        &self,
        variables: &mut Variables,
        view: &FleetView,
        nodes: &[Arc<KindObject>],
    ) -> Result<(), ApiError> {
        if variables.files.is_empty() || variables.needs_no_files() {
            return Ok(());
        }
        let (mut wanted, mut faults) = (BTreeMap::<FileCommit, WantedFiles>::new(), Vec::new());
        let mut count = 0;
        for node in nodes {
            let groups = view.groups_of(node);
            let files = variables.files.iter();
            for of in files.filter(|of| of.nodes.has(node.name(), &groups)) {
                let paths = match of.paths_for(node) {
                    Ok(paths) => paths,
                    Err(why) => {
                        faults.push(why);
                        continue;
                    }
                };
                let files = wanted.entry(of.commit.clone()).or_default();
                for (path, is_optional) in paths {
                    let known = files.entry(path).or_insert_with(|| {
                        count += 1;
                        None
                    });
                    if !is_optional && known.is_none() {
                        *known = Some(format!("node {}: {}", node.name(), of.shown()));
                    }
                }
            }
            if count > MAX_FILES {
                let message =
                    format!("the nodes of a run have at most {MAX_FILES} files of variables");
                return Err(ApiError::bad_request(message));
            }
        }
        told(faults)?;
        let mut left = MAX_BYTES;
        for (commit, files) in wanted {
            let source = Source {
                repository: Some(commit.repository.clone()),
                commit: Some(commit.commit.clone()),
                path: None,
            };
            let tree = self.tree_of(&source, "a Variable").await?;
            let at = commit.clone();
            let read = tokio::task::spawn_blocking(move || read_files(&*tree, &at, files, left));
            let read = read
                .await
                .map_err(|error| ApiError::internal(error.to_string()))?;
            let (read, unread) = read.map_err(ApiError::bad_request)?;
            left = unread;
            variables.read.0.extend(read);
        }
        Ok(())
    }
}

/// Paths, each with who cannot do without it.
type WantedFiles = BTreeMap<String, Option<String>>;

type FoundFiles = BTreeMap<(FileCommit, String), Option<ReadFile>>;

/// Reads files of a commit, and says how many bytes more may be read.
fn read_files(
    tree: &dyn Vfs,
    commit: &FileCommit,
    files: WantedFiles,
    mut left: usize,
) -> Result<(FoundFiles, usize), String> {
    let (mut found, mut faults) = (BTreeMap::new(), Vec::new());
    let shown: String = commit.commit.chars().take(12).collect();
    for (path, needed_by) in files {
        let key = (commit.clone(), path.clone());
        match tree.read(&Utf8Path::new("/").join(&path)) {
            Ok(content) => {
                left = left.checked_sub(content.len()).ok_or_else(|| {
                    format!("the files of variables of a run have more than {} MiB", MAX_BYTES >> 20)
                })?;
                match read_variable_file(&path, &content) {
                    Ok(variables) => {
                        let digest = Digest::of(&content).hex();
                        let digest = digest.get(..16).unwrap_or_default().to_owned();
                        found.insert(key, Some(ReadFile { digest, variables }));
                    }
                    Err(why) => faults.push(why),
                }
            }
            Err(VfsError::NotFound(_)) => match needed_by {
                None => {
                    found.insert(key, None);
                }
                Some(by) => faults.push(format!(
                    "{by}: there is no file `{path}` in {shown} of Repository {}; `optional: true` allows that",
                    commit.repository
                )),
            },
            Err(error) => faults.push(format!("`{path}` in {shown}: {error}")),
        }
    }
    told(faults).map_err(|error| error.message)?;
    Ok((found, left))
}

fn told(mut faults: Vec<String>) -> Result<(), ApiError> {
    if faults.is_empty() {
        return Ok(());
    }
    let more = faults.len().saturating_sub(MAX_FAULTS);
    faults.truncate(MAX_FAULTS);
    if more > 0 {
        faults.push(format!("and {more} more"));
    }
    Err(ApiError::bad_request(faults.join("; ")))
}
