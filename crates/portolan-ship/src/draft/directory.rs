//! A document of what lies in a directory: Dockerfiles, Cargo packages, Go modules, directories of built pages.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use super::{Draft, DraftArtifact, document, plain_name, quoted, unique};

/// How deep is looked.
const MAX_DEPTH: usize = 4;

/// How many directories are looked at.
const MAX_DIRECTORIES: usize = 5_000;

/// Directories that hold what others made.
const LEFT_OUT: &[&str] = &[
    "node_modules",
    "target",
    "vendor",
    "testdata",
    "tests",
    "test",
];

/// Why no document can be made up.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The directory cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The directory.
        path: Utf8PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// Nothing is there.
    #[error(
        "nothing is found in `{0}` that could be built: no Dockerfile, no Cargo package or Go module with a program, no directory with an `index.html`"
    )]
    Nothing(Utf8PathBuf),
}

/// Makes a document up of what lies in a directory; names of images begin with `registry`.
pub fn draft_of_directory(directory: &Utf8Path, registry: &str) -> Result<Draft, DraftError> {
    let project = plain_name(directory.file_name().unwrap_or("project"));
    let registry = registry.trim_end_matches('/');
    let mut artifacts = Vec::new();
    let mut left = vec![(String::new(), 0)];
    let mut seen = 0;
    let mut notes = Vec::new();
    while let Some((relative, depth)) = left.pop() {
        seen += 1;
        if seen > MAX_DIRECTORIES {
            notes.push(format!(
                "only the first {MAX_DIRECTORIES} directories were looked at"
            ));
            break;
        }
        let found = Listing::read(&directory.join(&relative))?;
        let sources = found.sources(&relative, directory);
        let is_built = !sources.is_empty();
        for (suffix, source) in sources {
            let name = Utf8Path::new(&relative).file_name().unwrap_or(&project);
            let name = unique(&plain_name(&format!("{name}{suffix}")), &artifacts);
            artifacts.push(DraftArtifact {
                image: format!("{registry}/{project}/{name}").to_ascii_lowercase(),
                name,
                needs: Vec::new(),
                source,
            });
        }
        // What lies below something that is built is usually part of it; the top may hold several.
        if depth < MAX_DEPTH && (relative.is_empty() || !is_built) {
            let mut below: Vec<_> = found.directories.iter().collect();
            below.sort();
            below.reverse();
            left.extend(below.into_iter().map(|name| {
                let path = if relative.is_empty() {
                    name.clone()
                } else {
                    format!("{relative}/{name}")
                };
                (path, depth + 1)
            }));
        }
    }
    if artifacts.is_empty() {
        return Err(DraftError::Nothing(directory.to_owned()));
    }
    if registry == "registry.example" {
        notes.push(
            "the images are named `registry.example/…`; `--registry` or an edit names your own"
                .to_owned(),
        );
    }
    Ok(Draft {
        text: document(&project, &artifacts, &[]),
        artifacts: artifacts.len(),
        notes,
        is_whole: true,
    })
}

/// What a directory holds.
struct Listing {
    files: Vec<String>,
    directories: Vec<String>,
}

impl Listing {
    fn read(path: &Utf8Path) -> Result<Self, DraftError> {
        let failed = |source| DraftError::Read {
            path: path.to_owned(),
            source,
        };
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        for entry in path.read_dir_utf8().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_owned();
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() && !name.starts_with('.') && !LEFT_OUT.contains(&name.as_str()) {
                directories.push(name);
            } else if kind.is_file() {
                files.push(name);
            }
        }
        files.sort();
        Ok(Self { files, directories })
    }

    fn has(&self, name: &str) -> bool {
        self.files.iter().any(|file| file == name)
    }

    /// What can be built here, each with what distinguishes its name.
    fn sources(&self, relative: &str, top: &Utf8Path) -> Vec<(String, Vec<String>)> {
        let place = if relative.is_empty() { "." } else { relative };
        let mut sources = Vec::new();
        for file in &self.files {
            if let Some(suffix) = dockerfile_suffix(file) {
                let mut fields = vec![format!("context: {}", quoted(place))];
                if file != "Dockerfile" {
                    fields.push(format!("file: {}", quoted(file)));
                }
                let line = format!("dockerfile: {{{}}}", fields.join(", "));
                sources.push((suffix, vec![line]));
            }
        }
        if !sources.is_empty() {
            return sources;
        }
        let is_program = |main: &str| top.join(relative).join(main).is_file();
        if self.has("Cargo.toml") && is_program("src/main.rs") {
            return vec![(String::new(), cargo(place, self.has("Cargo.lock")))];
        }
        if self.has("go.mod") && self.has("main.go") {
            return vec![(String::new(), go(place, self.has("go.sum")))];
        }
        if self.has("index.html") && !relative.is_empty() {
            let place = quoted(place);
            return vec![(
                String::new(),
                vec![
                    "oci:".to_owned(),
                    format!("  context: {place}"),
                    "  copy: [{to: /srv/www}]".to_owned(),
                ],
            )];
        }
        Vec::new()
    }
}

/// What a name such as `worker.Dockerfile` or `Dockerfile.worker` adds; `None` if it is no Dockerfile.
fn dockerfile_suffix(file: &str) -> Option<String> {
    if file == "Dockerfile" || file == "Containerfile" {
        return Some(String::new());
    }
    if file.ends_with(".dockerignore") {
        return None;
    }
    let word = file
        .strip_suffix(".Dockerfile")
        .or_else(|| file.strip_prefix("Dockerfile."))?;
    Some(format!("-{word}"))
}

fn cargo(place: &str, has_lock: bool) -> Vec<String> {
    let (locked, lock) = if has_lock {
        (" --locked", ", Cargo.lock")
    } else {
        ("", "")
    };
    let install = format!("cargo install{locked} --path . --root \\\"$PORTOLAN_OUT\\\" --no-track");
    program(
        place,
        &install,
        &format!("[\"src/**\", Cargo.toml{lock}]"),
        "[[rustc, -V], [cargo, -V]]",
    )
}

fn go(place: &str, has_sum: bool) -> Vec<String> {
    let sum = if has_sum { ", go.sum" } else { "" };
    program(
        place,
        "go build -trimpath -o \\\"$PORTOLAN_OUT/bin/\\\" .",
        &format!("[\"**/*.go\", go.mod{sum}]"),
        "[[go, version]]",
    )
}

fn program(place: &str, script: &str, inputs: &str, versions: &str) -> Vec<String> {
    vec![
        "command:".to_owned(),
        format!("  run: [sh, -ec, \"{script}\"]"),
        format!("  dir: {}", quoted(place)),
        format!("  inputs: {inputs}"),
        format!("  versions: {versions}"),
        "  output: files".to_owned(),
    ]
}
