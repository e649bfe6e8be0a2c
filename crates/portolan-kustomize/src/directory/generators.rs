//! What a kustomization generates: ConfigMaps, Secrets, the objects of charts, and what `generators` make.

use std::sync::Arc;

use portolan_yaml::Text;

use super::{Accumulator, Directory};
use crate::error::Result;
use crate::generate::chart::{ChartArgs, render_chart};
use crate::generate::{Generated, generate, merge_options};
use crate::load::kustomization::GeneratorArgs;
use crate::resource::provenance::Provenance;
use crate::resource::set::ResourceSet;
use crate::resource::{Origin, Resource};

impl Directory<'_, '_> {
    pub(super) fn run_generators(&self, accumulator: &mut Accumulator) -> Result<()> {
        let kustomization = &self.kustomization;
        let made = [
            (
                Generated::ConfigMap,
                "ConfigMapGenerator",
                &kustomization.config_maps,
            ),
            (Generated::Secret, "SecretGenerator", &kustomization.secrets),
        ];
        for (kind, name, generators) in made {
            for args in generators {
                let resource = self.generate(kind, name, args)?;
                let provenance = self.builtin(name);
                self.add_generated(accumulator, vec![resource], provenance.as_ref())?;
            }
        }
        for chart in &kustomization.charts {
            let resources = self.render_chart(chart, &kustomization.chart_home)?;
            let provenance = self.builtin("HelmChartInflationGenerator");
            self.add_generated(accumulator, resources, provenance.as_ref())?;
        }
        for (plugin, provenance) in self.plugins(&kustomization.generators)? {
            let resources = plugin.generate(self)?;
            self.add_generated(accumulator, resources, provenance.as_ref())?;
        }
        Ok(())
    }

    fn generate(
        &self,
        kind: Generated,
        step: &'static str,
        args: &GeneratorArgs,
    ) -> Result<Resource> {
        let options = self.kustomization.generator_options.as_ref();
        let args = GeneratorArgs {
            options: merge_options(args.options.as_ref(), options),
            ..args.clone()
        };
        generate(kind, &args, &self.loader, self.step(step), self.budget())
    }

    pub(crate) fn render_chart(&self, chart: &ChartArgs, home: &Text) -> Result<Vec<Resource>> {
        let mut chart = chart.clone();
        if chart.namespace.is_empty() {
            chart.namespace = self.inherited_namespace();
        }
        let origin = self.step("HelmChartInflationGenerator");
        render_chart(
            &chart,
            home,
            &self.loader,
            self.build.options.charts,
            &origin,
            self.budget(),
        )
    }

    /// The namespace that charts here get when they name none.
    pub(super) fn inherited_namespace(&self) -> Text {
        if self.kustomization.namespace.is_empty() {
            return self.chart_namespace.clone();
        }
        self.kustomization.namespace.clone()
    }

    fn add_generated(
        &self,
        accumulator: &mut Accumulator,
        resources: Vec<Resource>,
        provenance: Option<&Provenance>,
    ) -> Result<()> {
        let mut generated = ResourceSet::default();
        for mut resource in resources {
            if let Some(provenance) = provenance {
                provenance.note_origin(&mut resource)?;
            }
            generated.append(resource, self.schema())?;
        }
        accumulator.set.absorb_all(generated, self.schema())
    }

    pub(super) fn builtin(&self, kind: &str) -> Option<Provenance> {
        self.provenance
            .as_ref()
            .map(|provenance| provenance.builtin(self.file_name, kind))
    }

    /// The origin of what a step of this kustomization makes or changes.
    pub(crate) fn step(&self, step: &'static str) -> Arc<Origin> {
        Arc::new(Origin {
            file: self.loader.root().join(self.file_name),
            step: Text::from_static(step),
            ..Origin::default()
        })
    }
}
