//! `--source`: files that stand for sources which are not the repository.

use std::collections::BTreeSet;
use std::sync::Arc;

use portolan_flux::api::SourceRef;
use portolan_flux::{Rendering, SourcePattern};
use portolan_object::nearest;
use portolan_supply::SourceMapping;
use portolan_vfs::Vfs;

use crate::error::CommandError;

/// Files that stand for sources.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// Files that stand for a source or its charts; may be repeated
    ///
    /// PATH is a directory with the source's files, a chart, a directory of charts, or an archive (`.tgz`). The source is
    /// a GitRepository, OCIRepository, HelmRepository, Bucket or ExternalArtifact, named as far as that tells it apart.
    #[arg(
        long = "source",
        alias = "sources",
        value_name = "[[KIND/]NAMESPACE/]NAME=PATH",
        value_delimiter = ',',
        help_heading = "Sources and network"
    )]
    sources: Vec<String>,
}

/// Which source, and the files that stand for it.
type Mapped = (SourcePattern, Arc<dyn Vfs>);

impl SourceArgs {
    /// Opens the directories and archives.
    pub(crate) fn open(&self) -> Result<Vec<Mapped>, CommandError> {
        let opened = self.sources.iter().map(|text| {
            let mapping = SourceMapping::open(text).map_err(CommandError::user)?;
            Ok((mapping.pattern, mapping.files))
        });
        opened.collect()
    }

    /// Whether none are given.
    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Refuses a mapping for a source that no cluster has; where not everything was looked at, it may have.
    pub(crate) fn check<'a>(
        &self,
        clusters: impl Iterator<Item = &'a Rendering>,
    ) -> Result<(), CommandError> {
        if self.sources.is_empty() {
            return Ok(());
        }
        let mut known = BTreeSet::new();
        for rendering in clusters {
            if !rendering.walk.is_complete {
                return Ok(());
            }
            known.extend(rendering.sources());
        }
        for text in &self.sources {
            let (pattern, _) = text.split_once('=').unwrap_or((text, ""));
            let Ok(pattern) = pattern.parse::<SourcePattern>() else {
                continue;
            };
            if !known.iter().any(|source| pattern.matches(source)) {
                return Err(unknown(&pattern, &known));
            }
        }
        Ok(())
    }
}

fn unknown(pattern: &SourcePattern, known: &BTreeSet<SourceRef>) -> CommandError {
    let error = CommandError::usage(format!("--source {pattern}: there is no such source"));
    let wanted = [pattern.name.to_string()];
    match nearest(&wanted, known.iter(), |source| source.id.name.as_str()) {
        Some(near) => error.hint(format!(
            "there is `{}/{}`; `portolan get sources` lists all {}",
            near.kind,
            near.id,
            known.len()
        )),
        None => error.hint("the repository refers to no source at all"),
    }
}
