//! Charts of `helmCharts`, from the chart home or pulled.

use std::sync::Arc;

use portolan_budget::Budget;
use portolan_helm::values::Overrides;
use portolan_helm::{
    Capabilities, Chart as HelmChart, OutputOptions, Package, Release, ReleaseName,
    ReportedVersion, TemplateInput, template,
};
use portolan_kustomize::{Chart, ChartArgs, ChartFailure, ChartRenderer};
use portolan_sources::{ChartRequest, Limits, Sources, unpack};
use portolan_supply::LazyRuntime;
use portolan_vfs::{Memory, Vfs};

/// The range that Helm's `--devel` stands for.
const DEVELOPMENT: &str = ">0.0.0-0";

/// Renders charts, and pulls those that are not in the chart home into the cache; the chart home stays as it is.
#[derive(Clone, Copy)]
pub(super) struct HelmCharts<'a> {
    /// Brings charts that are not in the chart home.
    pub(super) sources: &'a Sources,
    /// Where they are fetched.
    pub(super) runtime: &'a LazyRuntime,
    /// Takes the place of what charts say.
    pub(super) kube_version: Option<&'a ReportedVersion>,
    /// Take the place of what charts say, unless there are none.
    pub(super) api_versions: &'a [String],
    /// What each chart may use.
    pub(super) budget: &'a Budget,
}

impl HelmCharts<'_> {
    fn capabilities(&self, args: &ChartArgs) -> Result<Capabilities, String> {
        let version = match (self.kube_version, args.kube_version.as_str()) {
            (Some(version), _) => Some(version.clone()),
            // kustomize takes an empty field for an absent one.
            (None, "") => None,
            (None, own) => Some(ReportedVersion::parse(own).map_err(|error| error.to_string())?),
        };
        let mut capabilities = Capabilities::default();
        if let Some(version) = version {
            capabilities = capabilities.with_version(version);
        }
        if self.api_versions.is_empty() {
            let own = args.api_versions.iter();
            capabilities.add_api_versions(own.map(portolan_yaml::Text::as_str));
        } else {
            capabilities.add_api_versions(self.api_versions.iter().map(String::as_str));
        }
        Ok(capabilities)
    }
}

impl HelmCharts<'_> {
    fn pulled(&self, args: &ChartArgs) -> anyhow::Result<Memory> {
        let version = match args.version.as_str() {
            "" if args.devel => DEVELOPMENT,
            version => version,
        };
        let request = ChartRequest {
            repository: args.repository.to_string(),
            name: args.name.to_string(),
            version: version.to_owned(),
            ..ChartRequest::default()
        };
        let archive = self.runtime.wait(self.sources.chart(&request))??;
        Ok(unpack(&archive.content, &Limits::default())?)
    }
}

impl ChartRenderer for HelmCharts<'_> {
    fn pull(&self, args: &ChartArgs) -> Result<Arc<dyn Vfs>, ChartFailure> {
        Ok(Arc::new(self.pulled(args)?))
    }

    fn render(&self, chart: &Chart<'_>) -> Result<Vec<u8>, ChartFailure> {
        let args = chart.args;
        let package = Package::load(chart.files, &chart.directory)?;
        let namespace = if args.namespace.is_empty() {
            "default"
        } else {
            &args.namespace
        };
        let name = release_name(args)?;
        let input = TemplateInput {
            values: merged_values(chart)?,
            capabilities: Arc::new(self.capabilities(args)?),
            budget: self.budget.renewed(),
            ..TemplateInput::new(Release::new(&name, namespace))
        };
        // Helm's own words: what led to them is in the text.
        let rendered =
            template(&HelmChart::new(package), &input).map_err(|error| error.to_string())?;
        let output = OutputOptions {
            include_crds: args.include_crds,
            no_hooks: args.skip_hooks,
            skip_tests: args.skip_tests,
            show_only: Vec::new(),
        };
        Ok(rendered.to_text(&output)?.into_bytes())
    }
}

fn release_name(args: &ChartArgs) -> Result<String, String> {
    let name = match (args.release.as_str(), args.name_template.as_str()) {
        ("", "") => ReleaseName::Unnamed,
        ("", template) => ReleaseName::Template(template),
        (name, "") => ReleaseName::Given(name),
        _ => return Err("cannot set `nameTemplate` and also `releaseName`".to_owned()),
    };
    name.resolve().map_err(|error| error.to_string())
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
