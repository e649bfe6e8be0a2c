//! Collects what a kustomization names: files, directories (which are built first), and components, which change all
//! of it.

use portolan_budget::Budget;
use portolan_vfs::VfsError;
use portolan_yaml::Text;

use super::Directory;
use crate::config::{Config, read_config, read_crds};
use crate::error::{During, Error, Result};
use crate::load::fetch::RepoSpec;
use crate::load::kustomization::Role;
use crate::load::loader::Loader;
use crate::load::read::{parse_config, read_resources};
use crate::resource::set::ResourceSet;
use crate::resource::{Origin, Resource};
use crate::schema::Schema;
use crate::transform::VariableSet;
use crate::value::cost::RESOURCE_STEPS;

/// What was accumulated so far.
#[derive(Debug, Default)]
pub(crate) struct Accumulator {
    pub(crate) set: ResourceSet,
    pub(crate) config: Config,
    pub(crate) variables: VariableSet,
}

impl<'a> Directory<'_, 'a> {
    /// Builds the directory on top of what was accumulated: nothing, or a parent's resources for a component.
    pub(crate) fn accumulate(&self, mut accumulator: Accumulator) -> Result<Accumulator> {
        let kustomization = &self.kustomization;
        self.add_resources(&mut accumulator, &kustomization.resources)
            .during(|| "accumulating resources".to_owned())?;
        self.merge_configs(&mut accumulator.config)?;
        self.run_generators(&mut accumulator)?;
        let mut accumulator = self.run_components(accumulator)?;
        self.run_transformers(&mut accumulator)?;
        self.run_validators(&mut accumulator)?;
        let Accumulator { set, variables, .. } = &mut accumulator;
        variables.add(&kustomization.variables, set, self.schema())?;
        Ok(accumulator)
    }

    /// The built-in field specs, those of the configuration files, and those that definitions of CRDs imply.
    fn merge_configs(&self, config: &mut Config) -> Result<()> {
        let mut files = Config::Empty;
        for path in &self.kustomization.configurations {
            let document = parse_config(&self.loader.load(path)?, path, self.budget())?;
            files.merge(read_config(&document)?, self.budget())?;
        }
        let mut own = Config::Builtin;
        own.merge(files, self.budget())?;
        config.merge(own, self.budget())?;
        for path in &self.kustomization.crds {
            let document = parse_config(&self.loader.load(path)?, path, self.budget())?;
            let definitions = read_crds(&document, self.budget())?;
            config
                .merge(definitions, self.budget())
                .during(|| format!("loading CRDs `{path}`"))?;
        }
        Ok(())
    }

    pub(super) fn add_resources(
        &self,
        accumulator: &mut Accumulator,
        paths: &[Text],
    ) -> Result<()> {
        for path in paths {
            let as_file = match self.read_file(path) {
                Ok(resources) => {
                    let added = resources
                        .into_iter()
                        .try_for_each(|resource| accumulator.set.append(resource, self.schema()));
                    match added.during(|| format!("merging resources from `{path}`")) {
                        Ok(()) => continue,
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            if as_file.is_exceeded() {
                return Err(as_file);
            }
            self.add_directory(accumulator, path, as_file)?;
        }
        Ok(())
    }

    fn read_file(&self, path: &str) -> Result<Vec<Resource>> {
        if RepoSpec::parse(path).is_some_and(|spec| spec.is_surely_git()) {
            return Err(Error::refused("URL is a git repository"));
        }
        let content = self.loader.load(path)?;
        let origin = Origin {
            file: self.loader.path_of(path),
            ..Origin::default()
        };
        let mut resources = read_resources(&content, &origin, self.budget())?;
        if let Some(provenance) = &self.provenance {
            let place = provenance.join(path);
            resources
                .iter_mut()
                .try_for_each(|resource| place.set_origin(resource))?;
        }
        Ok(resources)
    }

    fn add_directory(
        &self,
        accumulator: &mut Accumulator,
        path: &str,
        as_file: Error,
    ) -> Result<()> {
        let loader = match self.loader.open(path) {
            Ok(loader) => loader,
            // What is wrong with a file is wrong with the file; that it is no directory either says nothing.
            Err(Error::File(VfsError::NotDirectory(_))) => return Err(as_file),
            Err(_) if matches!(as_file, Error::Yaml { .. }) => return Err(as_file),
            Err(source) => return Err(neither(path, as_file, source)),
        };
        let built = self
            .open_directory(loader, path, Role::Kustomization)
            .and_then(|directory| {
                let root = directory.loader.root().to_owned();
                let built = directory.accumulate(Accumulator::default());
                let built = built.during(|| format!("recursed accumulation of path `{root}`"))?;
                accumulator
                    .absorb(built, self.schema(), self.budget())
                    .during(|| format!("recursed merging from path `{root}`"))
            });
        built.map_err(|source| {
            if source.is_exceeded() {
                return source;
            }
            neither(path, as_file, source)
        })
    }

    fn open_directory(&self, loader: Loader<'a>, path: &str, role: Role) -> Result<Self> {
        let root = loader.root().to_owned();
        let mut directory = Directory::load(self.build, loader)
            .during(|| format!("couldn't make target for path `{root}`"))?;
        directory.provenance = self
            .provenance
            .as_ref()
            .map(|provenance| provenance.join(path));
        directory.chart_namespace = self.inherited_namespace();
        directory.set_schema()?;
        match (role, directory.kustomization.role) {
            (Role::Component, Role::Kustomization) => Err(Error::refused(format!(
                "expected kind 'Component' for path `{root}` but got 'Kustomization'"
            ))),
            (Role::Kustomization, Role::Component) => Err(Error::refused(format!(
                "expected kind != 'Component' for path `{root}`"
            ))),
            _ => Ok(directory),
        }
    }

    /// Components run one after the other, each on everything so far.
    fn run_components(&self, accumulator: Accumulator) -> Result<Accumulator> {
        let mut accumulator = accumulator;
        for path in &self.kustomization.components {
            let run = |accumulator: Accumulator| {
                let loader = self.loader.open(path)?;
                let directory = self.open_directory(loader, path, Role::Component)?;
                directory.accumulate(accumulator)
            };
            accumulator = run(accumulator).during(|| format!("accumulating component `{path}`"))?;
        }
        Ok(accumulator)
    }
}

fn neither(path: &str, as_file: Error, source: Error) -> Error {
    Error::NeitherFileNorDirectory {
        path: path.to_owned(),
        as_file: Box::new(as_file),
        source: Box::new(source),
    }
}

impl Accumulator {
    fn absorb(&mut self, other: Self, schema: &Schema, budget: &Budget) -> Result<()> {
        budget.step(other.set.len() as u64 * RESOURCE_STEPS)?;
        self.set.append_all(other.set, schema)?;
        self.config.merge(other.config, budget)?;
        self.variables.merge(other.variables)
    }
}
