//! Charts of `helmCharts`, rendered from the chart home.

use std::sync::Arc;

use portolan_helm::values::Overrides;
use portolan_helm::{
    Capabilities, Chart as HelmChart, OutputOptions, Package, Release, TemplateInput, template,
};
use portolan_kustomize::{Chart, ChartRenderer};

/// What Helm calls a release that nobody named.
const UNNAMED: &str = "release-name";

/// Renders charts that lie in the chart home; none is pulled.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalCharts;

impl ChartRenderer for LocalCharts {
    fn render(&self, chart: &Chart<'_>) -> Result<Vec<u8>, String> {
        let args = chart.args;
        if !chart.files.is_directory(&chart.directory) {
            let directory = &chart.directory;
            return Err(format!(
                "no chart at `{directory}`, and charts are not pulled here: unpack it there"
            ));
        }
        let package =
            Package::load(chart.files, &chart.directory).map_err(|error| error.to_string())?;
        let namespace = if args.namespace.is_empty() {
            "default"
        } else {
            &args.namespace
        };
        let name = if args.release.is_empty() {
            UNNAMED
        } else {
            &args.release
        };
        let mut capabilities = match args.kube_version.as_str() {
            "" => Capabilities::default(),
            version => Capabilities::for_version(version).map_err(|error| error.to_string())?,
        };
        capabilities.add_api_versions(args.api_versions.iter().map(portolan_yaml::Text::as_str));
        let input = TemplateInput {
            values: merged_values(chart)?,
            capabilities: Arc::new(capabilities),
            ..TemplateInput::new(Release::new(name, namespace))
        };
        let rendered =
            template(&HelmChart::new(package), &input).map_err(|error| error.to_string())?;
        let output = OutputOptions {
            include_crds: args.include_crds,
            no_hooks: args.skip_hooks,
            skip_tests: args.skip_tests,
            show_only: Vec::new(),
        };
        Ok(rendered
            .to_text(&output)
            .map_err(|error| error.to_string())?
            .into_bytes())
    }
}

fn merged_values(chart: &Chart<'_>) -> Result<portolan_helm::values::Tree, String> {
    let mut files = Vec::new();
    for values in &chart.values {
        let text = portolan_yaml::write_v2(values).map_err(|error| error.to_string())?;
        files.push(("values".to_owned(), text.into_bytes()));
    }
    let overrides = Overrides {
        files,
        ..Overrides::default()
    };
    overrides
        .merge(&mut |name| Err(format!("`{name}` is not read here")))
        .map_err(|error| error.to_string())
}
