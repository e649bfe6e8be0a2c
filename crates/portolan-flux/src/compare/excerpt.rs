//! What the text of a Kustomization's files contains, searched for words without building it.
//!
//! ```text
//! path ──▶ every file at and below it ──▶ text, and where kustomization files lead
//! ```
//!
//! There is an excerpt only if the words show clearly what the files can give: no objects of Flux except
//! HelmReleases, no CRDs, and nothing that is read from elsewhere.

use camino::{Utf8Path, Utf8PathBuf};
use memchr::{memchr_iter, memmem, memrchr};
use portolan_vfs::{FileKind, Vfs, resolve};
use portolan_yaml::{Dialect, Map, Node, Value};

use crate::kustomization::generate;
use crate::release::loaded_chart::DEFINITION;

/// How deep directories are read.
const MAX_DEPTH: usize = 32;

/// The most text that is looked at; building is not much dearer than searching what is larger.
const MAX_BYTES: usize = 4 << 20;

/// What every API group of Flux, of its operator and of their extensions has in its name.
const FLUX: &[u8] = b"fluxcd.";

/// Ways to write a letter by its number, or a text by its base64: what they spell cannot be searched for.
const HIDDEN: [&[u8]; 5] = [b"\\x", b"\\u", b"\\U", b"\\\n", b"!!binary"];

/// The fields of a kustomization file whose effect is known from the text of what they name.
const UNDERSTOOD: [&str; 22] = [
    "apiVersion",
    "bases",
    "buildMetadata",
    "commonAnnotations",
    "commonLabels",
    "components",
    "configMapGenerator",
    "configurations",
    "crds",
    "generatorOptions",
    "images",
    "kind",
    "labels",
    "metadata",
    "namespace",
    "openapi",
    "patches",
    "patchesJson6902",
    "patchesStrategicMerge",
    "replicas",
    "resources",
    "secretGenerator",
];

/// The fields whose entries are files or directories; what is not there may be an address.
const PATHS: [&str; 3] = ["resources", "components", "bases"];

/// Annotations of kustomize-controller, which say how an object is treated and make none.
const ANNOTATIONS: [&str; 6] = [
    "prune",
    "ssa",
    "substitute",
    "reconcile",
    "decrypt",
    "force",
];

/// The text of files, and what is known of it.
#[derive(Debug, Default)]
pub(crate) struct Excerpt {
    text: Vec<u8>,
    /// Words in which variables stand, where objects and charts are named.
    composed: Vec<String>,
    /// Paths that kustomization files lead to and that lie elsewhere.
    leads_to: Vec<Utf8PathBuf>,
}

impl Excerpt {
    /// Of everything at and below a path; nothing when there is a doubt.
    pub(crate) fn of(files: &dyn Vfs, path: &Utf8Path) -> Option<Self> {
        let mut excerpt = Self::default();
        match files.kind(path).ok()?? {
            FileKind::Directory => excerpt.add_directory(files, path, MAX_DEPTH)?,
            FileKind::File => excerpt.add_file(files, path)?,
        }
        Some(excerpt)
    }

    /// Of texts that stand in trees; nothing when there is a doubt.
    pub(crate) fn of_nodes<'a>(nodes: impl Iterator<Item = &'a Node>) -> Option<Self> {
        let mut lines = Vec::new();
        nodes.for_each(|node| add_scalars(node, &mut lines));
        let mut excerpt = Self::default();
        excerpt.add_lines(&lines)?;
        Some(excerpt)
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(crate) fn composed(&self) -> &[String] {
        &self.composed
    }

    pub(crate) fn leads_to(&self) -> &[Utf8PathBuf] {
        &self.leads_to
    }

    fn add_directory(&mut self, files: &dyn Vfs, directory: &Utf8Path, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        // Links are no part of what Flux builds.
        let entries = files.list(directory).ok()?.into_iter();
        for entry in entries.filter(|entry| !entry.is_symlink) {
            let path = directory.join(&entry.name);
            if entry.is_directory {
                self.add_directory(files, &path, depth)?;
            } else {
                self.add_file(files, &path)?;
            }
        }
        Some(())
    }

    fn add_file(&mut self, files: &dyn Vfs, path: &Utf8Path) -> Option<()> {
        let bytes = files.read(path).ok()?;
        if self.text.len() + bytes.len() > MAX_BYTES {
            return None;
        }
        match path.parent().zip(path.file_name()) {
            Some((directory, name)) if generate::FILE_NAMES.contains(&name) => {
                self.add_kustomization(files, directory, &bytes)
            }
            _ => self.add_text(&bytes),
        }
    }

    /// A kustomization file: what it says without its layout, so that a patch in it begins where its lines do.
    fn add_kustomization(
        &mut self,
        files: &dyn Vfs,
        directory: &Utf8Path,
        bytes: &[u8],
    ) -> Option<()> {
        let mut lines = Vec::new();
        for document in portolan_yaml::parse_bytes(bytes, Dialect::Helm).ok()? {
            let map = document.as_map()?;
            if !is_understood(files, directory, map) {
                return None;
            }
            add_scalars(&document, &mut lines);
        }
        for line in &lines {
            self.add_path(files, directory, line)?;
        }
        self.add_lines(&lines)
    }

    /// Takes down a text that may be a path to somewhere else. One without `..` stays below its directory.
    fn add_path(&mut self, files: &dyn Vfs, directory: &Utf8Path, text: &str) -> Option<()> {
        let leads_up = text.contains("..");
        if leads_up && text.contains('\n') {
            return None;
        }
        // A generator may name the key that a file gets.
        let written = text.split_once('=').map_or(text, |(_, path)| path);
        for written in [text, written] {
            let is_absolute =
                written.starts_with('/') && files.kind(written.into()).ok()?.is_some();
            if leads_up || is_absolute {
                self.leads_to.push(resolve(directory, written));
            }
        }
        Some(())
    }

    /// Texts without their keys: any may be a name.
    fn add_lines(&mut self, lines: &[String]) -> Option<()> {
        let with_variables = lines.iter().filter(|line| line.contains('$'));
        self.composed.extend(with_variables.cloned());
        self.add_text(lines.join("\n").as_bytes())
    }

    fn add_text(&mut self, text: &[u8]) -> Option<()> {
        let mentions = |word: &[u8]| memmem::find(text, word).is_some();
        let is_sealed = mentions(b"ENC[") && !mentions(b"kind: Secret");
        if is_sealed || mentions(DEFINITION.as_bytes()) || HIDDEN.iter().any(|word| mentions(word))
        {
            return None;
        }
        if !memmem::find_iter(text, FLUX).all(|at| is_harmless(line_around(text, at))) {
            return None;
        }
        self.add_variables(text)?;
        self.text.extend_from_slice(text);
        self.text.push(b'\n');
        Some(())
    }

    /// Takes down names with variables in them; a kind that is a variable may be any.
    fn add_variables(&mut self, text: &[u8]) -> Option<()> {
        for at in memchr_iter(b'$', text) {
            let line = String::from_utf8_lossy(line_around(text, at)).into_owned();
            let says = |key: &str| line.contains(key);
            if says("kind") || says("apiVersion") {
                return None;
            }
            if says("name") || says("value") || says("chart") {
                self.composed.push(line);
            }
        }
        Some(())
    }
}

/// Whether the fields of a kustomization file are understood and what they name is there.
fn is_understood(files: &dyn Vfs, directory: &Utf8Path, map: &Map) -> bool {
    let is_there = |written: &Node| {
        let path = written.as_str().map(|written| resolve(directory, written));
        path.is_some_and(|path| matches!(files.kind(&path), Ok(Some(_))))
    };
    map.iter().all(|entry| {
        let field = entry.key.as_str();
        let mut written = entry.value.as_list().into_iter().flatten();
        UNDERSTOOD.contains(&field) && (!PATHS.contains(&field) || written.all(is_there))
    })
}

/// The line of a text that a byte is in.
fn line_around(text: &[u8], at: usize) -> &[u8] {
    let (before, after) = text.split_at(at);
    let begin = memrchr(b'\n', before).map_or(0, |line_break| line_break + 1);
    let end = memchr::memchr(b'\n', after).map_or(text.len(), |line_break| at + line_break);
    text.get(begin..end).unwrap_or_default()
}

/// Whether a line names a group of Flux in a way that makes no object of Flux but a HelmRelease: in a comment, at the
/// beginning of a document or a patch, in a patch's target, or in the name of an annotation.
fn is_harmless(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else {
        return false;
    };
    let annotation = line
        .trim_start()
        .strip_prefix("kustomize.toolkit.fluxcd.io/");
    line.starts_with('#')
        || line.starts_with("apiVersion: helm.toolkit.fluxcd.io/")
        || line == "helm.toolkit.fluxcd.io"
        || annotation.is_some_and(|rest| ANNOTATIONS.iter().any(|name| rest.starts_with(name)))
}

/// Every text in a tree, keys as well.
fn add_scalars(node: &Node, lines: &mut Vec<String>) {
    match &node.value {
        Value::Scalar(scalar) => lines.push(scalar.text.to_string()),
        Value::List(list) => list.iter().for_each(|item| add_scalars(item, lines)),
        Value::Map(map) => {
            for entry in map {
                lines.push(entry.key.as_str().to_owned());
                add_scalars(&entry.value, lines);
            }
        }
    }
}
