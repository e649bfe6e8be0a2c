//! Files laid out as an image, without a daemon.
//!
//! ```text
//! context ──scan──▶ entries ──▶ inputs ──key──▶ in the store? ──no──▶ layers, config, manifest ──▶ store, tag
//! ```

use camino::Utf8Path;
use portolan_digest::Digest;
use portolan_image::{
    Base, BuildIo, CopySpec, Descriptor, ImageSpec, LayerOptions, Memo, Platform, Scan,
    ScanOptions, Source, build_image, build_index, ignore_patterns, scan,
};
use portolan_layout::{ActionResult, Directory, Run};

use super::referrers::{Subject, refer};
use super::{BuildSetup, Builder, Needs, Prospect, ShipError};
use crate::document::{BaseImage, FileTime, OciSource};
use crate::inputs::{Inputs, is_of};
use crate::outcome::Built;
use crate::task::Task;

/// The version of what we make: another one builds anew.
pub(crate) const BUILDER_VERSION: &str = concat!("portolan ", env!("CARGO_PKG_VERSION"));

/// Lays out files.
pub(crate) struct OciBuilder {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) source: OciSource,
    pub(crate) setup: BuildSetup,
    pub(crate) needs: Needs,
}

impl Builder for OciBuilder {
    fn build(&self, task: &Task) -> Result<Built, ShipError> {
        let context = self.setup.path(&self.source.context)?;
        self.layout().build(&context, Inputs::default(), task)
    }
}

impl OciBuilder {
    /// Builds the image without giving it the name of the artifact in the store.
    pub(crate) fn preview(&self, task: &Task) -> Result<Built, ShipError> {
        let context = self.setup.path(&self.source.context)?;
        let layout = Layout {
            is_named: false,
            ..self.layout()
        };
        layout.build(&context, Inputs::default(), task)
    }

    /// What is known before it is built.
    pub(crate) fn look(&self, task: &Task) -> Result<Prospect, ShipError> {
        let context = self.setup.path(&self.source.context)?;
        self.layout().look(&context, Inputs::default(), task)
    }

    fn layout(&self) -> Layout<'_> {
        Layout {
            name: &self.name,
            image: &self.image,
            made_of: None,
            source: &self.source,
            setup: &self.setup,
            needs: &self.needs,
            is_named: true,
        }
    }
}

/// Files of a directory, laid out as an image.
pub(super) struct Layout<'a> {
    pub(super) name: &'a str,
    /// The repository of the image.
    pub(super) image: &'a str,
    /// The key of whatever made the files; none if they are there by themselves.
    pub(super) made_of: Option<&'a Digest>,
    pub(super) source: &'a OciSource,
    pub(super) setup: &'a BuildSetup,
    pub(super) needs: &'a Needs,
    /// Whether the image gets the artifact's name in the store, with what is kept under that; one that is only looked at
    /// does not.
    pub(super) is_named: bool,
}

/// An image that is ready to be built: all that it is made of was read.
struct Prepared<'a> {
    run: Run<'a>,
    files: Directory,
    scans: Vec<(Platform, Scan)>,
    /// The digests of all files, by their states.
    memo: Memo,
    base: Option<Digest>,
    inputs: Inputs,
    key: Digest,
}

impl Layout<'_> {
    /// Builds the image of a directory that has these inputs beside its files.
    pub(super) fn build(
        &self,
        context: &Utf8Path,
        inputs: Inputs,
        task: &Task,
    ) -> Result<Built, ShipError> {
        let mut prepared = self.prepare(context, inputs, task)?;
        let known = prepared.run.cached(&prepared.key)?;
        let last = prepared.run.inputs(self.name);
        if let Some(known) = known {
            if !self.is_named {
                return Ok(built(&known, true, Vec::new()));
            }
            prepared.run.tag(self.name, &known.image)?;
            if !is_of(last.as_deref(), &prepared.key) {
                prepared.name_files();
                prepared.keep_inputs(self.name);
            }
            self.refer(&prepared, &known.image)?;
            return Ok(built(&known, true, Vec::new()));
        }
        if task.is_cancelled() {
            return Err(ShipError::Cancelled);
        }
        // Only now is it worth to name every file.
        prepared.name_files();
        let because = prepared.inputs.changes_since(last.as_deref());
        let image = self.write(&prepared, task)?;
        let result = ActionResult {
            image,
            inputs: Vec::new(),
        };
        prepared.run.record(&prepared.key, &result)?;
        if self.is_named {
            prepared.run.tag(self.name, &result.image)?;
            prepared.keep_inputs(self.name);
            self.refer(&prepared, &result.image)?;
        }
        Ok(built(&result, false, because))
    }

    /// Says beside the image where it comes from.
    fn refer(&self, prepared: &Prepared<'_>, image: &Descriptor) -> Result<(), ShipError> {
        let base = match &self.source.base {
            BaseImage::Registry(name) | BaseImage::Artifact(name) => name.as_str(),
            BaseImage::Layout { directory, .. } => directory.as_str(),
            BaseImage::Scratch => "",
        };
        let only = match prepared.scans.as_slice() {
            [(_, scan)] => Some(scan),
            // Which file is for which platform is in no bill of the whole.
            _ => None,
        };
        let subject = Subject {
            repository: self.image,
            image,
            key: self.made_of.unwrap_or(&prepared.key),
            base: prepared.base.as_ref().map(|digest| (base, digest)),
            files: only.map(|scan| (scan.entries.as_slice(), &prepared.files as &dyn Source)),
        };
        refer(&subject, self.setup, &prepared.run)
    }

    /// What is known before it is built.
    pub(super) fn look(
        &self,
        context: &Utf8Path,
        inputs: Inputs,
        task: &Task,
    ) -> Result<Prospect, ShipError> {
        let mut prepared = self.prepare(context, inputs, task)?;
        let image = prepared.run.cached(&prepared.key)?;
        let last = prepared.run.inputs(self.name);
        prepared.name_files();
        Ok(Prospect {
            key: prepared.key,
            inputs: prepared.inputs,
            image: image.map(|known| known.image.digest),
            last,
        })
    }

    fn prepare(
        &self,
        context: &Utf8Path,
        mut inputs: Inputs,
        task: &Task,
    ) -> Result<Prepared<'_>, ShipError> {
        let run = self.setup.store.begin()?;
        let files = Directory::open(context).map_err(|source| ShipError::Context {
            path: context.to_owned(),
            source,
        })?;
        task.progress(0, None, "reading files");
        let (scans, memo) = self.scan(&files, context, &run, task)?;
        let base = self.base(&run)?;
        self.add_settings(&mut inputs);
        inputs.add(
            "base",
            &base.as_ref().map(ToString::to_string).unwrap_or_default(),
        );
        let key = inputs.key(scans.iter().map(|(_, scan)| scan));
        Ok(Prepared {
            run,
            files,
            scans,
            memo,
            base,
            inputs,
            key,
        })
    }

    /// Writes layers, config and manifest for each platform.
    fn write(&self, prepared: &Prepared<'_>, task: &Task) -> Result<Descriptor, ShipError> {
        let Prepared {
            run, files, scans, ..
        } = prepared;
        let blocks = run.blocks(self.name);
        let (mut images, mut layers) = (Vec::new(), Vec::new());
        for (at, (platform, scan)) in scans.iter().enumerate() {
            task.progress(
                at as u64,
                Some(scans.len() as u64),
                format!("writing layers for {platform}"),
            );
            let below = prepared
                .base
                .as_ref()
                .map(|digest| Base::read(run, digest, platform, run))
                .transpose()?;
            let io = BuildIo {
                source: files,
                memo: &prepared.memo,
                cache: run,
                blocks: &blocks,
                sink: run,
                threads: self.setup.threads,
            };
            let image = build_image(&scan.entries, &self.spec(platform), below.as_ref(), &io)?;
            images.push(image.manifest);
            layers.extend(image.layers.into_iter().map(|layer| layer.digest));
        }
        if self.is_named {
            blocks.keep(layers.iter());
        }
        Ok(match images.as_slice() {
            [only] => only.clone(),
            several => build_index(several, run)?,
        })
    }

    fn scan(
        &self,
        files: &Directory,
        context: &Utf8Path,
        run: &Run<'_>,
        task: &Task,
    ) -> Result<(Vec<(Platform, Scan)>, Memo), ShipError> {
        let ignore = ignore_patterns(files, None)?;
        let never = self.setup.never_read(context);
        let mut known = run.memo(self.name);
        let mut memo = Memo::default();
        let mut scans = Vec::new();
        for platform in &self.source.platforms {
            let copies: Vec<CopySpec> = self
                .source
                .copies
                .iter()
                .map(|copy| for_platform(copy, platform))
                .collect();
            let options = ScanOptions {
                ignore: &ignore,
                never: &never,
                memo: &known,
                now: self.setup.now,
                threads: self.setup.threads,
            };
            let mut found = scan(files, &copies, &options)?;
            for notice in &found.notices {
                task.log(format!("{notice}; {}", notice.hint()));
            }
            if self.source.platforms.len() > 1 {
                // What one platform shares with the next is read once.
                known.extend(found.memo.clone());
            }
            memo.extend(std::mem::take(&mut found.memo));
            scans.push((platform.clone(), found));
        }
        if self.is_named {
            run.keep_memo(self.name, &memo);
        }
        Ok((scans, memo))
    }

    /// The time of all files; `None` if it is that of a commit and there is none.
    fn modified(&self) -> Option<u64> {
        match self.source.modified {
            FileTime::At(seconds) => Some(seconds),
            FileTime::Commit => self.setup.git_facts().map(|facts| facts.committed),
        }
    }

    fn base(&self, run: &Run<'_>) -> Result<Option<Digest>, ShipError> {
        self.modified().ok_or(ShipError::NoCommit)?;
        Ok(match &self.source.base {
            BaseImage::Scratch => None,
            BaseImage::Artifact(name) => self.needs.get(name).copied(),
            BaseImage::Layout { directory, name } => {
                let directory = self.setup.path(directory)?;
                Some(run.import(&directory, name.as_deref())?.digest)
            }
            BaseImage::Registry(name) => {
                Some(self.setup.bases.get(name, &self.source.platforms, run)?)
            }
        })
    }

    fn spec(&self, platform: &Platform) -> ImageSpec {
        ImageSpec {
            config: self.source.config.clone(),
            platform: platform.clone(),
            layers: LayerOptions {
                compression: self.source.compression,
                modified: self.modified().unwrap_or(0),
            },
            buckets: self.source.buckets,
        }
    }

    /// Everything beside files that the bytes of the image depend on.
    pub(super) fn add_settings(&self, inputs: &mut Inputs) {
        let config = &self.source.config;
        inputs.add("builder", BUILDER_VERSION);
        inputs.add("compression", &self.source.compression.version());
        inputs.add("mtime", &self.modified().unwrap_or(0).to_string());
        inputs.add("buckets", &self.source.buckets.to_string());
        inputs.add_list("entrypoint", config.entrypoint.as_deref());
        inputs.add_list("cmd", config.cmd.as_deref());
        inputs.add_list("user", config.user.as_ref().map(std::slice::from_ref));
        inputs.add_list("workdir", config.workdir.as_ref().map(std::slice::from_ref));
        inputs.add_list("ports", Some(&config.ports));
        for (name, value) in &config.env {
            inputs.add(format!("env {name}"), value);
        }
        for (name, value) in &config.labels {
            inputs.add(format!("label {name}"), value);
        }
        let platforms: Vec<String> = self
            .source
            .platforms
            .iter()
            .map(ToString::to_string)
            .collect();
        inputs.add_list("platforms", Some(&platforms));
    }
}

impl Prepared<'_> {
    fn name_files(&mut self) {
        for (_, scan) in &self.scans {
            self.inputs.add_entries(&scan.entries);
        }
    }

    fn keep_inputs(&self, name: &str) {
        self.run.keep_inputs(name, &self.inputs.kept(&self.key));
    }
}

pub(super) fn built(result: &ActionResult, is_cached: bool, because: Vec<String>) -> Built {
    Built {
        digest: result.image.digest,
        media_type: result.image.media_type.clone(),
        size: result.image.size,
        is_cached,
        because,
    }
}

/// A copy with the words for its platform put in.
fn for_platform(copy: &CopySpec, platform: &Platform) -> CopySpec {
    let from = copy.from.replace("${arch}", &platform.architecture);
    let from = from.replace("${os}", &platform.os);
    CopySpec {
        from: from.replace("${platform}", &platform.to_string()),
        ..copy.clone()
    }
}
