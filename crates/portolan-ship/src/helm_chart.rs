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
        let all = self.chart.package().values.overlay(&self.values);
        for (path, artifact) in &self.source.images {
            let Some(image) = images.get(artifact) else {
                continue;
            };
            for (path, value) in image_values(&all, path, image) {
                let text = format!("{path}={value}");
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

/// What a value and those beside it are set to so that a chart uses an image. Charts take a whole reference, or its parts:
///
/// ```text
/// image: …                                ──▶ image: repository:tag@sha256:…
/// image: {registry, repository, digest}   ──▶ registry, repository, tag and digest, each on its own
/// image: {repository, tag}                ──▶ repository, and `tag@sha256:…` as the tag
/// ```
fn image_values(values: &Tree, path: &str, image: &str) -> Vec<(String, String)> {
    let is_part = |name: &str| ["repository", "tag"].contains(&name);
    let table = match path.rsplit_once('.') {
        Some((table, part)) if is_part(part) => table,
        _ => path,
    };
    let keys: Vec<&str> = table.split('.').collect();
    let has = |part: &str| {
        let found = values.at_path(&keys);
        found.is_some_and(|found| found.at_path(&[part]).is_some())
    };
    let Some((repository, tag, digest)) = parts_of(image).filter(|_| has("repository")) else {
        return vec![(path.to_owned(), image.to_owned())];
    };
    let mut set = vec![match repository.split_once('/') {
        Some((registry, rest)) if has("registry") => {
            vec![
                ("registry", registry.to_owned()),
                ("repository", rest.to_owned()),
            ]
        }
        _ => vec![("repository", repository.to_owned())],
    }];
    set.push(if has("digest") {
        vec![("tag", tag.to_owned()), ("digest", digest.to_owned())]
    } else {
        vec![("tag", format!("{tag}@{digest}"))]
    });
    let set = set.into_iter().flatten();
    set.map(|(part, value)| (format!("{table}.{part}"), value))
        .collect()
}

/// The repository, tag and digest of `repository:tag@sha256:…`.
fn parts_of(image: &str) -> Option<(&str, &str, &str)> {
    let (name, digest) = image.split_once('@')?;
    let (repository, tag) = name.rsplit_once(':')?;
    Some((repository, tag, digest))
}

/// A value as `helm --set` takes it. A comma would begin another value, unless it is one of a list.
fn assignment(path: &str, value: &str) -> String {
    if value.starts_with('{') {
        format!("{path}={value}")
    } else {
        format!("{path}={}", value.replace(',', "\\,"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: &str = "registry.example:5000/shop/web:0a1b@sha256:0a1b2c";

    #[track_caller]
    fn check(values: &str, path: &str, expected: &[(&str, &str)]) {
        let values = Tree::read_table(values.as_bytes()).expect("a table");
        let set = image_values(&values, path, IMAGE);
        let set: Vec<_> = set
            .iter()
            .map(|(path, value)| (path.as_str(), value.as_str()))
            .collect();
        assert_eq!(set, expected);
    }

    #[test]
    fn a_chart_that_takes_a_whole_reference_gets_one() {
        check("image: nginx", "image", &[("image", IMAGE)]);
        check("{}", "web.image", &[("web.image", IMAGE)]);
    }

    #[test]
    fn a_chart_that_splits_references_gets_the_parts() {
        let repository = "registry.example:5000/shop/web";
        check(
            "image: {repository: nginx, tag: ''}",
            "image",
            &[
                ("image.repository", repository),
                ("image.tag", "0a1b@sha256:0a1b2c"),
            ],
        );
        check(
            "web: {image: {repository: nginx, tag: '1', digest: ''}}",
            "web.image.repository",
            &[
                ("web.image.repository", repository),
                ("web.image.tag", "0a1b"),
                ("web.image.digest", "sha256:0a1b2c"),
            ],
        );
        check(
            "image: {registry: docker.io, repository: bitnami/nginx, tag: '1', digest: ''}",
            "image",
            &[
                ("image.registry", "registry.example:5000"),
                ("image.repository", "shop/web"),
                ("image.tag", "0a1b"),
                ("image.digest", "sha256:0a1b2c"),
            ],
        );
    }
}
