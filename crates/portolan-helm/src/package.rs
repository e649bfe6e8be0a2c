//! A chart as in its files: metadata, default values, templates, other files and subcharts.
//!
//! ```text
//! directory ─┐
//!            ├─▶ list of files ─▶ Chart (metadata checked, values parsed, subcharts loaded the same way)
//! archive  ──┘
//! ```
//!
//! A [`Package`] never changes after loading and is shared between threads; what a render does to it (disabling
//! dependencies, renaming them, importing values) happens to a [`crate::dependency::Plan`] made from it.

pub(crate) mod archive;
mod content;
pub(crate) mod decode;
mod directory;
mod ignore;
mod metadata;
mod packed;

use std::collections::BTreeMap;
use std::convert;
use std::sync::{Arc, OnceLock};

use camino::{Utf8Path, Utf8PathBuf};
use memchr::memmem;
use portolan_budget::{Budget, Exceeded};
use portolan_gotmpl::Value;
use portolan_vfs::{Vfs, VfsError};

pub use archive::{ArchiveError, MAX_CHART_BYTES, MAX_CHART_FILE_BYTES, MAX_CHART_FILES};
pub use content::Content;
pub use metadata::{Dependency, ImportValues, Lock, Maintainer, Metadata};
pub use packed::PackedPackage;

use crate::profile::Profile;
use crate::values::Tree;
use crate::values::schema::{SchemaSource, exact, loose};
use decode::read_yaml;

/// How deep charts may lie in each other's `charts/`.
pub const MAX_SUBCHART_DEPTH: usize = 32;

/// A file of a chart: its path below the chart's root and its content without a byte order mark.
#[derive(Debug, Clone)]
pub struct ChartFile {
    /// The path below the chart's root.
    pub name: String,
    /// The bytes.
    pub content: Content,
    /// What a `values.yaml` says, where it was read beside other files.
    defaults: Option<Result<Tree, String>>,
}

/// A loaded chart.
#[derive(Debug, Clone)]
pub struct Package {
    /// `Chart.yaml`.
    pub metadata: Metadata,
    /// `Chart.lock` or `requirements.lock`.
    pub lock: Option<Lock>,
    /// `values.yaml`: a table, of its first document.
    pub values: Tree,
    /// All documents of `values.yaml`, where there are several: what Helm 4 takes.
    pub merged_values: Option<Tree>,
    /// `values.schema.json`.
    pub schema: Option<Content>,
    /// Everything below `templates/`.
    pub templates: Vec<ChartFile>,
    /// Everything that is none of the above: what templates see as `.Files`, `crds/` included.
    pub files: Vec<ChartFile>,
    /// The charts below `charts/`, sorted by the name of their directory or archive.
    pub subcharts: Vec<Arc<Self>>,
    /// What Helm prints to its log while loading.
    pub warnings: Vec<String>,
    /// The schema made ready on first use.
    compiled_schema: SchemaCells,
}

/// The schema as each Helm compiles it; a copy of a package compiles its own.
#[derive(Debug, Default)]
struct SchemaCells {
    loose: OnceLock<Result<loose::Schema, String>>,
    exact: OnceLock<Result<exact::Schema, String>>,
}

/// The schema, made ready now or before.
///
/// What cannot be compiled where nobody fetches may only lack what it refers to, so that is not kept.
fn compiled<'c, S>(
    cell: &'c OnceLock<Result<S, String>>,
    source: Option<&dyn SchemaSource>,
    compile: impl FnOnce() -> Result<S, String>,
) -> Result<&'c S, String> {
    let kept = match (cell.get(), source) {
        (Some(kept), _) => kept,
        (None, Some(_)) => cell.get_or_init(compile),
        (None, None) => {
            let schema = compile()?;
            cell.get_or_init(|| Ok(schema))
        }
    };
    kept.as_ref().map_err(String::clone)
}

impl Clone for SchemaCells {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Why a chart could not be loaded. The texts are Helm's where Helm has one.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file could not be read.
    #[error(transparent)]
    File(#[from] VfsError),
    /// The archive is damaged or hostile.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// `.helmignore` has a pattern that cannot be read.
    #[error("{0}")]
    Ignore(String),
    /// There is no `Chart.yaml`.
    #[error("Chart.yaml file is missing")]
    NoMetadata,
    /// A YAML file of the chart cannot be read.
    #[error("cannot load {file}: {reason}")]
    Yaml {
        /// The file's name.
        file: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The metadata breaks a rule.
    #[error("validation: {0}")]
    Invalid(String),
    /// A file is larger than [`MAX_CHART_FILE_BYTES`].
    #[error("chart file {0:?} is larger than the maximum file size {MAX_CHART_FILE_BYTES}")]
    FileTooLarge(String),
    /// Directories, or charts in charts, lie too deep.
    #[error("`{0}` lies too deep, or has too many files")]
    TooDeep(Utf8PathBuf),
    /// A chart below `charts/` could not be loaded.
    #[error("error unpacking subchart {name} in {parent}: {reason}")]
    Subchart {
        /// The name of its directory or archive.
        name: String,
        /// The chart it lies in.
        parent: String,
        /// What is wrong with it.
        reason: Box<Self>,
    },
}

// === impl ChartFile ===

impl ChartFile {
    /// A file of these bytes, less a byte order mark.
    pub fn new(name: String, content: &[u8]) -> Self {
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        Self {
            name,
            content: content.into(),
            defaults: None,
        }
    }

    /// Whether a path is that of the `values.yaml` of the chart or of one below it.
    fn is_defaults(name: &str) -> bool {
        let below = name
            .strip_prefix("charts/")
            .and_then(|rest| rest.split_once('/'));
        below.map_or(name == "values.yaml", |(_, name)| Self::is_defaults(name))
    }

    /// The same file, with its values read where it is for values.
    fn with_defaults(mut self) -> Self {
        if Self::is_defaults(&self.name) {
            self.defaults = Some(read_defaults(&self.content));
        }
        self
    }
}

// === impl Package ===

impl Package {
    /// Loads a chart from a directory or a packed archive, whichever is at the path.
    pub fn load(vfs: &dyn Vfs, path: &Utf8Path) -> Result<Self, LoadError> {
        if vfs.is_directory(path) {
            Self::from_files(directory::read(vfs, path, ChartFile::with_defaults)?)
        } else {
            Self::from_archive(&vfs.read(path)?)
        }
    }

    /// Loads a chart from the bytes of a `.tgz`.
    pub fn from_archive(bytes: &[u8]) -> Result<Self, LoadError> {
        Self::from_files(archive::unpack(bytes)?)
    }

    /// Loads a chart from its files.
    pub fn from_files(files: Vec<ChartFile>) -> Result<Self, LoadError> {
        assemble(files, 0)
    }

    /// The files of a chart directory, less what its `.helmignore` names: what its archive would hold.
    pub fn directory_files(vfs: &dyn Vfs, path: &Utf8Path) -> Result<Vec<ChartFile>, LoadError> {
        directory::read(vfs, path, convert::identity)
    }

    /// The chart's name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The chart's defaults as that Helm reads them.
    pub fn defaults(&self, profile: Profile) -> &Tree {
        match (profile, &self.merged_values) {
            (Profile::Helm4, Some(merged)) => merged,
            _ => &self.values,
        }
    }

    /// What that Helm says of values that the chart's schema does not allow; also when the schema itself is none.
    pub(crate) fn schema_messages(
        &self,
        values: &Value,
        profile: Profile,
        source: Option<&dyn SchemaSource>,
        budget: &Budget,
    ) -> Result<Option<String>, Exceeded> {
        let Some(bytes) = self.schema.as_deref() else {
            return Ok(None);
        };
        let cells = &self.compiled_schema;
        match profile {
            Profile::Helm3 => {
                let compile = || loose::Schema::compile(bytes, source);
                let schema = compiled(&cells.loose, source, compile);
                schema.map_or_else(
                    |refusal| Ok(Some(refusal)),
                    |schema| schema.messages(values, budget),
                )
            }
            Profile::Helm4 => {
                let compile = || exact::Schema::compile(bytes, source);
                let schema = compiled(&cells.exact, source, compile);
                schema.map_or_else(
                    |refusal| Ok(Some(refusal)),
                    |schema| schema.messages(values, budget),
                )
            }
        }
    }

    /// The charts that `Chart.yaml` lists and `charts/` does not hold.
    pub fn missing_dependencies(&self) -> Vec<&str> {
        let listed = self.metadata.dependencies.iter().flatten();
        listed
            .filter(|dependency| self.subcharts.iter().all(|c| c.name() != dependency.name))
            .map(|dependency| dependency.name.as_str())
            .collect()
    }
}

fn assemble(files: Vec<ChartFile>, depth: usize) -> Result<Package, LoadError> {
    if depth > MAX_SUBCHART_DEPTH {
        return Err(LoadError::TooDeep("charts".into()));
    }
    let mut chart = Package {
        metadata: read_metadata(&files)?,
        lock: None,
        values: Tree::empty_table(),
        merged_values: None,
        schema: None,
        templates: Vec::new(),
        files: Vec::new(),
        subcharts: Vec::new(),
        warnings: Vec::new(),
        compiled_schema: SchemaCells::default(),
    };
    let mut subcharts: BTreeMap<String, Vec<ChartFile>> = BTreeMap::new();
    for file in files {
        if let Some(path) = file.name.strip_prefix("charts/")
            && extension(path) != Some("prov")
        {
            let directory = path.split('/').next().unwrap_or(path).to_owned();
            let name = path.to_owned();
            let files = subcharts.entry(directory).or_default();
            files.push(ChartFile { name, ..file });
        } else {
            chart.take_file(file)?;
        }
    }
    chart.metadata.validate().map_err(LoadError::Invalid)?;
    for (name, files) in subcharts {
        if name.starts_with(['_', '.']) {
            continue;
        }
        let loaded = assemble_subchart(&name, files, depth + 1);
        let subchart = loaded.map_err(|reason| LoadError::Subchart {
            name,
            parent: chart.metadata.name.clone(),
            reason: Box::new(reason),
        })?;
        chart.warnings.extend(subchart.warnings.iter().cloned());
        chart.subcharts.push(Arc::new(subchart));
    }
    Ok(chart)
}

fn assemble_subchart(
    name: &str,
    mut files: Vec<ChartFile>,
    depth: usize,
) -> Result<Package, LoadError> {
    if extension(name) == Some("tgz") {
        return match files.as_slice() {
            [file, ..] if file.name == name => assemble(archive::unpack(&file.content)?, depth),
            [file, ..] => Err(LoadError::Invalid(format!(
                "error unpacking subchart tar: expected {name}, got {}",
                file.name
            ))),
            [] => Err(LoadError::NoMetadata),
        };
    }
    files.retain_mut(|file| match file.name.split_once('/') {
        Some((_, rest)) => {
            file.name = rest.to_owned();
            true
        }
        None => false,
    });
    assemble(files, depth)
}

fn extension(path: &str) -> Option<&str> {
    Utf8Path::new(path).extension()
}

/// Reads `Chart.yaml` before all other files, which may need to know the chart's version.
fn read_metadata(files: &[ChartFile]) -> Result<Metadata, LoadError> {
    let mut metadata = Metadata::default();
    let mut found = false;
    for file in files {
        match file.name.as_str() {
            "Chart.yaml" => {
                fill(&mut metadata, "Chart.yaml", &file.content)?;
                if metadata.api_version.is_empty() {
                    "v1".clone_into(&mut metadata.api_version);
                }
                found = true;
            }
            // Helm reads a chart that has only these, and then refuses it for want of a name.
            "requirements.yaml" | "requirements.lock" => found = true,
            _ => {}
        }
    }
    if found {
        Ok(metadata)
    } else {
        Err(LoadError::NoMetadata)
    }
}

fn fill(metadata: &mut Metadata, file: &'static str, content: &Content) -> Result<(), LoadError> {
    read_yaml(content)
        .and_then(|node| metadata.fill(&node))
        .map_err(|reason| LoadError::Yaml { file, reason })
}

impl Package {
    /// Puts a file where it belongs.
    fn take_file(&mut self, file: ChartFile) -> Result<(), LoadError> {
        let is_v1 = self.metadata.api_version == "v1";
        match file.name.as_str() {
            "Chart.yaml" => {}
            "Chart.lock" => self.lock = Some(read_lock("Chart.lock", &file.content)?),
            "values.yaml" => {
                self.merged_values = read_documents(&file.content);
                let read = file.defaults;
                let read = read.unwrap_or_else(|| read_defaults(&file.content));
                self.values = read.map_err(|reason| LoadError::Yaml {
                    file: "values.yaml",
                    reason,
                })?;
            }
            "values.schema.json" => self.schema = Some(file.content),
            "requirements.yaml" => {
                if !is_v1 {
                    self.warn("Dependencies are handled in Chart.yaml since apiVersion \"v2\". We recommend migrating dependencies to Chart.yaml.");
                }
                fill(&mut self.metadata, "requirements.yaml", &file.content)?;
                if self.metadata.api_version == "v1" {
                    self.files.push(file);
                }
            }
            "requirements.lock" => {
                self.lock = Some(read_lock("requirements.lock", &file.content)?);
                if is_v1 {
                    self.files.push(file);
                } else {
                    self.warn("Dependency locking is handled in Chart.lock since apiVersion \"v2\". We recommend migrating to Chart.lock.");
                }
            }
            name if name.starts_with("templates/") => self.templates.push(file),
            _ => self.files.push(file),
        }
        Ok(())
    }

    fn warn(&mut self, text: &str) {
        self.warnings.push(format!("Warning: {text}"));
    }
}

fn read_lock(file: &'static str, content: &Content) -> Result<Lock, LoadError> {
    read_yaml(content)
        .and_then(|node| Lock::read(&node))
        .map_err(|reason| LoadError::Yaml { file, reason })
}

/// The documents of a values file that has several, when they can be read.
fn read_documents(content: &[u8]) -> Option<Tree> {
    let has_several = memmem::find(content, b"\n---").is_some();
    has_several.then(|| Tree::read_documents(content).ok())?
}

fn read_defaults(content: &Content) -> Result<Tree, String> {
    read_yaml(content).and_then(|node| Tree::table_of(&node))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> ChartFile {
        ChartFile::new(name.to_owned(), text.as_bytes())
    }

    const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";

    #[test]
    fn files_go_where_they_belong() {
        let package = Package::from_files(vec![
            file("Chart.yaml", CHART),
            file("values.yaml", "a: 1"),
            file("templates/a.yaml", ""),
            file("crds/c.yaml", ""),
            file("charts/db/Chart.yaml", "name: db\nversion: 0.1.0"),
            file("charts/_skipped/Chart.yaml", "{"),
            file("charts/README.md", ""),
        ]);
        let error = package.unwrap_err().to_string();
        assert_eq!(
            error,
            "error unpacking subchart README.md in web: Chart.yaml file is missing"
        );
    }

    #[test]
    fn a_v1_chart_has_its_dependencies_in_a_file_of_their_own() {
        let package = Package::from_files(vec![
            file("Chart.yaml", "name: old\nversion: 1.0.0"),
            file(
                "requirements.yaml",
                "dependencies: [{name: db, version: 1.x.x}]",
            ),
        ])
        .unwrap();
        assert_eq!(package.metadata.api_version, "v1");
        assert_eq!(package.missing_dependencies(), ["db"]);
        assert_eq!(package.files[0].name, "requirements.yaml");
    }

    #[test]
    fn numbers_become_texts_as_in_go() {
        let text = "name: web\nversion: 1.0.0\nappVersion: 1.10\nkubeVersion: 1";
        let package = Package::from_files(vec![file("Chart.yaml", text)]).unwrap();
        assert_eq!(package.metadata.app_version, "1.1");
        assert_eq!(package.metadata.kube_version, "1");
    }

    #[test]
    fn broken_metadata_are_refused_in_helms_words() {
        let refusal = |text: &str| {
            Package::from_files(vec![file("Chart.yaml", text)])
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refusal("version: 1.0.0"),
            "validation: chart.metadata.name is required"
        );
        assert_eq!(
            refusal("name: a/../b\nversion: 1.0.0"),
            "validation: chart.metadata.name \"a/../b\" is invalid"
        );
        assert_eq!(
            refusal("name: a\nversion: x"),
            "validation: chart.metadata.version \"x\" is invalid"
        );
        assert!(
            refusal("name: [a]").contains(
                "cannot unmarshal array into Go struct field Metadata.name of type string"
            )
        );
    }

    #[test]
    fn charts_that_nest_too_deep_are_refused() {
        let deep = "charts/a/".repeat(MAX_SUBCHART_DEPTH + 2);
        let mut files = vec![file("Chart.yaml", CHART)];
        let mut prefix = String::new();
        for part in deep.split_inclusive("a/") {
            prefix.push_str(part);
            files.push(file(&format!("{prefix}Chart.yaml"), CHART));
        }
        let error = Package::from_files(files).unwrap_err().to_string();
        assert!(error.contains("lies too deep"), "{error}");
    }

    #[test]
    fn alias_bombs_in_values_are_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let below = level - 1;
            let items = vec![format!("*a{below}"); 9].join(", ");
            text = format!("{text}a{level}: &a{level} [{items}]\n");
        }
        let loaded =
            Package::from_files(vec![file("Chart.yaml", CHART), file("values.yaml", &text)]);
        assert!(loaded.unwrap_err().to_string().contains("values.yaml"));
    }
}
