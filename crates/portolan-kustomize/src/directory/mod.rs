//! One directory with its kustomization, and the build of it: load, accumulate, generate, run components, transform,
//! validate.
//!
//! ```text
//! resources ─▶ configurations, crds ─▶ generators ─▶ components ─▶ transformers ─▶ validators ─▶ vars
//!     │ each a file, or a directory that goes through the same steps first
//! ```

mod accumulate;
mod files;
mod generators;
mod plugins;
mod steps;

use portolan_budget::Budget;
use portolan_yaml::{Dialect, Node, Text};

use crate::error::{During, Error, Result};
use crate::load::decode::Strictness;
use crate::load::kustomization::Kustomization;
use crate::load::loader::Loader;
use crate::load::read::{charge_document, parse_config};
use crate::options::Options;
use crate::resource::provenance::Provenance;
use crate::schema::{BUILTIN_VERSION, Schema};
use crate::value::cost::DIRECTORY_STEPS;

pub(crate) use accumulate::Accumulator;

const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// What one build shares between its directories.
pub(crate) struct Build<'a> {
    pub(crate) options: &'a Options<'a>,
    pub(crate) schema: Schema,
    pub(crate) budget: &'a Budget,
}

/// One directory with its kustomization.
pub(crate) struct Directory<'b, 'a> {
    pub(crate) build: &'b Build<'a>,
    pub(crate) loader: Loader<'a>,
    pub(crate) kustomization: Kustomization,
    file_name: &'static str,
    /// The place for `buildMetadata` annotations, if the build wants any.
    provenance: Option<Provenance>,
    /// The namespace that charts inherit from the kustomizations above.
    chart_namespace: Text,
}

impl<'b, 'a> Directory<'b, 'a> {
    /// The directory that is built.
    pub(crate) fn root(build: &'b Build<'a>, loader: Loader<'a>) -> Result<Self> {
        let directory = match build.options.kustomization {
            Some(document) => Self {
                kustomization: read_kustomization(
                    build,
                    document,
                    &loader,
                    Strictness::KnownFields,
                )?,
                file_name: FILE_NAMES[0],
                build,
                loader,
                provenance: None,
                chart_namespace: Text::default(),
            },
            None => Self::load(build, loader)?,
        };
        let wants_metadata = !directory.kustomization.metadata.is_empty();
        Ok(Self {
            provenance: wants_metadata.then(Provenance::default),
            ..directory
        })
    }

    fn load(build: &'b Build<'a>, loader: Loader<'a>) -> Result<Self> {
        build.budget.check()?;
        build.budget.step(DIRECTORY_STEPS)?;
        let mut found = FILE_NAMES
            .into_iter()
            .filter_map(|name| loader.load(name).ok().map(|content| (name, content)));
        let Some((file_name, content)) = found.next() else {
            return Err(Error::MissingKustomization(loader.root().to_owned()));
        };
        if found.next().is_some() {
            return Err(Error::ManyKustomizations(loader.root().to_owned()));
        }
        let file = loader.path_of(file_name);
        let document = parse_config(&content, file.as_str(), build.budget)?;
        let kustomization = read_kustomization(build, &document, &loader, Strictness::Strict)?;
        Ok(Self {
            build,
            loader,
            kustomization,
            file_name,
            provenance: None,
            chart_namespace: Text::default(),
        })
    }

    fn schema(&self) -> &'b Schema {
        &self.build.schema
    }

    fn budget(&self) -> &'a Budget {
        self.build.budget
    }

    /// Takes over `openapi`, unless a schema was set before.
    pub(crate) fn set_schema(&self) -> Result<()> {
        let get = |name: &str| {
            let pair = self
                .kustomization
                .openapi
                .iter()
                .find(|(key, _)| key.as_str() == name);
            pair.map(|(_, value)| value)
        };
        let schema = self.schema();
        let path = get("path")
            .map(|path| self.loader.load(path).map(|content| (path, content)))
            .transpose()?;
        if schema.is_decided() {
            return Ok(());
        }
        match (path, get("version")) {
            (Some(_), Some(_)) => Err(Error::refused(
                "builtin version and custom schema provided, cannot use both",
            )),
            (Some((path, content)), None) => {
                let document =
                    portolan_yaml::parse_one_bytes(&content, Dialect::Helm).map_err(|source| {
                        Error::Yaml {
                            file: path.to_string(),
                            source,
                        }
                    })?;
                charge_document(&document, path, self.budget())?;
                schema.decide_custom(&document);
                Ok(())
            }
            (None, Some(version)) if version.as_str() == BUILTIN_VERSION => {
                schema.decide_builtin();
                Ok(())
            }
            (None, Some(version)) if !version.is_empty() => Err(Error::refused(
                "the specified OpenAPI version is not built in",
            )),
            (None, _) => Ok(()),
        }
    }
}

fn read_kustomization(
    build: &Build<'_>,
    document: &Node,
    loader: &Loader<'_>,
    strictness: Strictness,
) -> Result<Kustomization> {
    let kustomization = Kustomization::read(document, strictness).during(|| {
        format!(
            "failed to read kustomization file under `{}`",
            loader.root()
        )
    })?;
    if let Some(warn) = build.options.warn {
        kustomization.deprecated.iter().copied().for_each(warn);
    }
    Ok(kustomization)
}
