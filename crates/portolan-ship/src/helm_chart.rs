//! The chart of a deploy step: loaded once, its values read, and rendered without a cluster for who wants to look.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8Path;
use portolan_helm::values::{Overrides, SetKind, Tree, set};
use portolan_helm::{Chart, Release, TemplateInput, template};
use portolan_vfs::Disk;
use serde_json::Value;

use crate::builder::inside;
use crate::document::{DeployStep, HelmSource};
use crate::render::RenderError;

/// A chart with what the document says about it.
#[derive(Debug, Clone)]
pub(crate) struct HelmChart {
    pub(crate) chart: Arc<Chart>,
    pub(crate) source: HelmSource,
    /// The values without images.
    values: Tree,
    namespace: String,
}

impl HelmChart {
    /// Loads the chart of a step and reads its values.
    pub(crate) fn load(
        step: &DeployStep,
        source: &HelmSource,
        directory: &Utf8Path,
    ) -> Result<Self, RenderError> {
        let failed = |message: String| RenderError::Chart {
            path: source.chart.clone(),
            message,
        };
        inside(directory, &source.chart)
            .ok_or_else(|| RenderError::Outside(source.chart.clone()))?;
        let disk = Disk::open(directory).map_err(|error| failed(error.to_string()))?;
        let chart = Chart::load(&disk, &Utf8Path::new("/").join(&source.chart))
            .map_err(|error| failed(portolan_engine::with_causes(&error)))?;
        let mut overrides = Overrides::default();
        for file in &source.values {
            let path = inside(directory, file).ok_or_else(|| RenderError::Outside(file.clone()))?;
            let content =
                std::fs::read(&path).map_err(|source| RenderError::Read { path, source })?;
            overrides.files.push((file.clone(), content));
        }
        overrides.typed = source
            .set
            .iter()
            .map(|(path, value)| assignment(path, value))
            .collect();
        let values = overrides.merge(&mut |_| Err("no file is read".to_owned()));
        Ok(Self {
            chart: Arc::new(chart),
            source: source.clone(),
            values: values.map_err(|error| failed(error.to_string()))?,
            namespace: step
                .namespace
                .clone()
                .unwrap_or_else(|| "default".to_owned()),
        })
    }

    /// The values with the images of artifacts put in.
    pub(crate) fn values(&self, images: &BTreeMap<String, String>) -> Result<Tree, RenderError> {
        let mut values = self.values.clone();
        for (path, artifact) in &self.source.images {
            if let Some(image) = images.get(artifact) {
                let text = format!("{path}={image}");
                set(&mut values, &text, SetKind::Literal).map_err(|error| RenderError::Chart {
                    path: self.source.chart.clone(),
                    message: format!("cannot set the value `{path}`: {error}"),
                })?;
            }
        }
        Ok(values)
    }

    /// Its definitions, objects and hooks as `helm template` gives them: without a cluster, and the same each time.
    pub(crate) fn objects(
        &self,
        images: &BTreeMap<String, String>,
    ) -> Result<Vec<Value>, RenderError> {
        let failed = |message: String| RenderError::Chart {
            path: self.source.chart.clone(),
            message,
        };
        let input = TemplateInput {
            values: self.values(images)?,
            ..TemplateInput::new(Release::new(&self.source.release, &self.namespace))
        };
        let rendered = template(&self.chart, &input)
            .map_err(|error| failed(portolan_engine::with_causes(&error)))?;
        let definitions = rendered
            .crds
            .iter()
            .map(|file| file.content.to_text().to_string());
        let objects = rendered
            .manifests
            .iter()
            .map(|manifest| manifest.text.to_string());
        let hooks = rendered
            .hooks
            .iter()
            .map(|hook| hook.manifest.text.to_string());
        let mut all = Vec::new();
        for text in definitions.chain(objects).chain(hooks) {
            all.extend(portolan_release::parse_objects(&text).map_err(failed)?);
        }
        Ok(all)
    }
}

/// A value as `helm --set` takes it. A comma would begin another value, unless it is one of a list.
fn assignment(path: &str, value: &str) -> String {
    if value.starts_with('{') {
        format!("{path}={value}")
    } else {
        format!("{path}={}", value.replace(',', "\\,"))
    }
}
