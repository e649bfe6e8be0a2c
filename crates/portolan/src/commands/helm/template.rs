//! `portolan helm template`: what `helm template` prints.

mod args;

use std::sync::Arc;

use camino::Utf8Path;
use portolan_helm::{Chart, Package, Release, TemplateInput, template as render};

use super::chart_options::load_chart;
use super::dependency::bring;
use super::pull::{Address, fetch};
use super::schemas::WebSchemas;
use super::template_files::write_files;
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
pub(crate) use args::TemplateArgs;

pub(crate) fn template(args: &TemplateArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    if args.validate {
        return Err(CommandError::usage(
            "--validate needs a cluster, and this command talks to none",
        )
        .hint("leave it out, or pass --validate=false"));
    }
    args.install.check()?;
    let (name, path) = args.name_and_chart()?;
    let chart = chart(args, path, app)?;
    if chart.package().metadata.deprecated {
        printer.warning("this chart is deprecated");
    }
    let mut release = Release::new(name, args.namespace.as_str());
    release.is_upgrade = args.is_upgrade;
    let profile = args.profile();
    let input = TemplateInput {
        values: args.options.merged_values()?,
        capabilities: args.options.capabilities(profile)?,
        profile,
        skip_schema_validation: args.options.skip_schema_validation,
        schemas: Some(Arc::new(WebSchemas {
            access: args.access.clone(),
            runtime: app.lazy_runtime().clone(),
        })),
        now: args.random.now(),
        live_seed: args.random.live_seed()?,
        lookup: args.lookup()?,
        budget: args.limit.budget(),
        ..TemplateInput::new(release)
    };
    let rendered = render(&chart, &input).map_err(CommandError::user)?;
    for warning in &rendered.warnings {
        printer.warning(warning);
    }
    match &args.output_dir {
        Some(directory) => {
            let below = args.release_name.then_some(input.release.name.as_str());
            write_files(directory, below, &rendered, &args.output(), printer)?;
        }
        None => {
            let text = rendered
                .to_text(&args.output())
                .map_err(CommandError::user)?;
            printer.data(text)?;
        }
    }
    // The process ends now: freeing thousands of values one by one would only take time.
    std::mem::forget((chart, input, rendered));
    Ok(ExitStatus::Clean)
}

/// The chart, fetched when it lies elsewhere.
fn chart(args: &TemplateArgs, path: &Utf8Path, app: &App) -> Result<Chart, CommandError> {
    let is_remote = ["oci://", "http://", "https://"]
        .iter()
        .any(|scheme| path.as_str().starts_with(scheme));
    if args.repo.is_some() || is_remote {
        return fetched(args, path.as_str(), app);
    }
    let chart = load_chart(path)?;
    if !args.dependency_update || chart.package().missing_dependencies().is_empty() {
        return Ok(chart);
    }
    bring(path, &args.access, app)?;
    load_chart(path)
}

fn fetched(args: &TemplateArgs, chart: &str, app: &App) -> Result<Chart, CommandError> {
    let address = Address {
        chart,
        repo: args.repo.as_deref(),
        version: args.install.version(&args.version),
    };
    let sources = args.access.sources();
    let access = args.access.access()?;
    let pulled = app.wait(fetch(&address, &sources, access))??;
    let package = Package::from_archive(&pulled.content).map_err(CommandError::user)?;
    Ok(Chart::new(package))
}
