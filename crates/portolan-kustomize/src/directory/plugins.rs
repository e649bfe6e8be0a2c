//! The built-in generators, transformers and validators that are written as separate objects.

use portolan_yaml::Text;

use super::{Accumulator, Directory};
use crate::error::Result;
use crate::generate::plugin::Plugin;
use crate::load::read::read_resources;
use crate::resource::provenance::Provenance;
use crate::resource::{Origin, Resource};

impl Directory<'_, '_> {
    /// The plugins of `generators`, `transformers` or `validators`, each with its provenance.
    pub(super) fn plugins(&self, entries: &[Text]) -> Result<Vec<(Plugin, Option<Provenance>)>> {
        let mut accumulator = Accumulator::default();
        let mut paths = Vec::new();
        for entry in entries {
            let origin = Origin {
                file: self.loader.root().join(self.file_name),
                ..Origin::default()
            };
            match read_resources(entry.as_bytes(), &origin, self.budget()) {
                Err(error) if error.is_exceeded() => return Err(error),
                Err(_) => paths.push(entry.clone()),
                Ok(resources) => {
                    for mut resource in resources {
                        if let Some(provenance) = &self.provenance {
                            provenance.join(self.file_name).set_origin(&mut resource)?;
                        }
                        accumulator.set.append(resource, self.schema())?;
                    }
                }
            }
        }
        self.add_resources(&mut accumulator, &paths)?;
        let mut plugins = Vec::new();
        for resource in &accumulator.set {
            let provenance = self.plugin_provenance(resource);
            plugins.push((Plugin::read(resource, self)?, provenance));
        }
        Ok(plugins)
    }

    fn plugin_provenance(&self, resource: &Resource) -> Option<Provenance> {
        let provenance = self.provenance.as_ref()?;
        let file = resource.origin.file.strip_prefix(self.loader.root()).ok()?;
        Some(provenance.join(file.as_str()).plugin(resource))
    }
}
