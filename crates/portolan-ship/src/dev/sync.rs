//! Saved files, copied into running pods: an archive that `tar` in the container unpacks.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use camino::Utf8Path;
use portolan_cluster::{Cluster, ClusterError, PodCommand, PodOutput, TargetPod};
use portolan_engine::with_causes;

use crate::document::SyncRule;

/// The most bytes that are copied at once: an archive is made in memory.
const MAX_BYTES: u64 = 32 << 20;

/// The most files that are copied at once.
const MAX_FILES: usize = 10_000;

/// So many bytes of what a failed command said are told.
const TOLD_BYTES: usize = 500;

/// Why files could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// A file cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// They are too large.
    #[error("there are more than {MAX_FILES} files, or they have more than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    /// The pod could not be reached.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A command in the container failed.
    #[error("`{command}` in the container ended with code {code}{said}")]
    Command {
        /// The program.
        command: String,
        /// Its exit code.
        code: i32,
        /// What it said, after a colon.
        said: String,
    },
}

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncCount {
    /// Files that were copied.
    pub copied: usize,
    /// Files that are no longer there and were removed.
    pub removed: usize,
}

/// Copies files of a rule into a container, removes those that are gone, and runs what the rule says.
///
/// `directory` is that of the artifact, which the files are relative to.
pub async fn sync_files(
    cluster: &Cluster,
    (pod, container): (&TargetPod, &str),
    rule: &SyncRule,
    directory: &Utf8Path,
    files: impl IntoIterator<Item = &str>,
) -> Result<SyncCount, SyncError> {
    let Archive {
        bytes,
        copied,
        gone,
    } = archive(rule, directory, files)?;
    let container = Container {
        cluster,
        pod,
        name: container,
    };
    if copied > 0 {
        // Files belong to whoever runs in the container, as they would if they were saved there.
        let command = ["tar", "xmf", "-", "-C", "/", "--no-same-owner"];
        container.run(command, Some(&bytes)).await?;
    }
    if !gone.is_empty() {
        let command = ["rm", "-rf", "--"].into_iter();
        container
            .run(command.chain(gone.iter().map(String::as_str)), None)
            .await?;
    }
    if !rule.after.is_empty() && copied + gone.len() > 0 {
        container
            .run(rule.after.iter().map(String::as_str), None)
            .await?;
    }
    Ok(SyncCount {
        copied,
        removed: gone.len(),
    })
}

struct Archive {
    bytes: Vec<u8>,
    copied: usize,
    /// Places of files that are no longer there.
    gone: Vec<String>,
}

fn archive<'a>(
    rule: &SyncRule,
    directory: &Utf8Path,
    files: impl IntoIterator<Item = &'a str>,
) -> Result<Archive, SyncError> {
    let mut builder = tar::Builder::new(Vec::new());
    builder.follow_symlinks(false);
    let (mut copied, mut gone, mut bytes) = (0, Vec::new(), 0);
    let mut waiting: BTreeSet<String> = files.into_iter().map(str::to_owned).collect();
    while let Some(file) = waiting.pop_first() {
        let path = directory.join(&file);
        let failed = |source| SyncError::Read {
            path: path.to_string(),
            source,
        };
        let place = place(rule, &file);
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => gone.push(place),
            Err(error) => return Err(failed(error)),
            // The system may not tell of files that a new directory had before it was watched.
            Ok(metadata) if metadata.is_dir() => {
                for entry in path.read_dir_utf8().map_err(failed)? {
                    let entry = entry.map_err(failed)?;
                    waiting.insert(format!("{file}/{}", entry.file_name()));
                }
            }
            Ok(metadata) => {
                bytes += metadata.len();
                copied += 1;
                if bytes > MAX_BYTES || copied > MAX_FILES {
                    return Err(SyncError::TooLarge);
                }
                let name = place.trim_start_matches('/');
                builder.append_path_with_name(&path, name).map_err(failed)?;
            }
        }
    }
    let bytes = builder.into_inner().map_err(|source| SyncError::Read {
        path: directory.to_string(),
        source,
    })?;
    Ok(Archive {
        bytes,
        copied,
        gone,
    })
}

/// Where a file goes in the container.
fn place(rule: &SyncRule, file: &str) -> String {
    let rest = file.strip_prefix(rule.fixed_part()).unwrap_or(file);
    format!("{}/{rest}", rule.to.trim_end_matches('/'))
}

struct Container<'a> {
    cluster: &'a Cluster,
    pod: &'a TargetPod,
    name: &'a str,
}

impl Container<'_> {
    async fn run<'w>(
        &self,
        words: impl IntoIterator<Item = &'w str>,
        input: Option<&[u8]>,
    ) -> Result<(), SyncError> {
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let command = PodCommand {
            container: Some(self.name),
            command: &words,
        };
        let mut said = Vec::new();
        let mut input = input;
        let reader = input.as_mut().map(|input| input as _);
        let ran = self
            .cluster
            .run_in_pod(self.pod, command, reader, |output| {
                let (PodOutput::Stdout(bytes) | PodOutput::Stderr(bytes)) = output;
                said.extend(bytes.iter().take(TOLD_BYTES.saturating_sub(said.len())));
            });
        let code = ran.await?;
        if code == 0 {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&said).trim().to_owned();
        Err(SyncError::Command {
            command: words.into_iter().next().unwrap_or_default(),
            code,
            said: match said.as_str() {
                "" => said,
                said => format!(": {said}"),
            },
        })
    }
}

impl SyncError {
    /// The error with its causes, in one line.
    pub fn text(&self) -> String {
        with_causes(self)
    }
}

#[cfg(test)]
mod tests {
    use portolan_yaml::Position;

    use super::*;

    fn rule(from: &str, to: &str) -> SyncRule {
        SyncRule {
            artifact: "web".to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            after: Vec::new(),
            at: Position::default(),
        }
    }

    #[test]
    fn the_place_of_a_file_replaces_what_the_pattern_says_before_its_wildcard() {
        let check = |from: &str, to: &str, file: &str, expected: &str| {
            assert_eq!(place(&rule(from, to), file), expected, "{from} {to}");
        };
        check("static/**", "/srv", "static/css/a.css", "/srv/css/a.css");
        check("static/**", "/srv/", "static/a.css", "/srv/a.css");
        check("**/*.py", "/app", "lib/a.py", "/app/lib/a.py");
        check(
            "conf/app-*.yaml",
            "/etc/app",
            "conf/app-1.yaml",
            "/etc/app/app-1.yaml",
        );
        check(
            "conf/app.yaml",
            "/etc/app",
            "conf/app.yaml",
            "/etc/app/app.yaml",
        );
    }

    #[test]
    fn an_archive_has_what_is_there_and_names_what_is_gone() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = Utf8Path::from_path(directory.path()).expect("UTF-8");
        fs::create_dir(root.join("static")).expect("a directory");
        fs::write(root.join("static/a.css"), "a {}").expect("a file");
        let made = archive(&rule("static/**", "/srv"), root, ["static", "static/b.css"]);
        let made = made.expect("an archive");
        assert_eq!(
            (made.copied, made.gone.as_slice()),
            (1, &["/srv/b.css".to_owned()][..])
        );
        let mut archive = tar::Archive::new(made.bytes.as_slice());
        let names: Vec<_> = archive
            .entries()
            .expect("entries")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .path()
                    .expect("a path")
                    .into_owned()
            })
            .collect();
        assert_eq!(names, [std::path::PathBuf::from("srv/a.css")]);
    }
}
