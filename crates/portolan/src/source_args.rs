//! `--source`: files in place of sources other than the repository.

use std::sync::Arc;

use portolan_flux::SourcePattern;
use portolan_supply::SourceMapping;
use portolan_vfs::Vfs;

use crate::error::CommandError;

/// Files that stand for sources.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// Use these files in place of a source or its charts; may be repeated
    ///
    /// PATH is a directory with the source's files, a chart, a directory of charts, or an archive (`.tgz`). The source
    /// is a GitRepository, OCIRepository, HelmRepository, Bucket or ExternalArtifact, with as much of its name as is
    /// needed to identify it.
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
}
