//! `portolan explain`: which file, patch, value or substitution produced an object or one of its fields.

mod print;

use portolan_review::explain::{
    ExplainedField, FieldQuery, NamedObject, explain_field, explain_object, render_for,
};
use portolan_review::inventory::{self, PlacedObject};
use portolan_secret::is_secret;
use portolan_yaml::{Node, Value};

use super::CommandResult;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::listing::{indented, list, record};
use crate::repository::RepositoryArgs;
use crate::secret::{RepositoryView, SecretArgs};
use crate::session::ShownRuns;

/// Say which file, patch, value or substitution produced an object or a field
///
/// The object is named as in kubectl, `KIND/NAME`, and a field of it by its path: `deploy/web.spec.replicas`,
/// `deploy/web.spec.template.spec.containers[web].image`. Items of lists are written by number or name.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan explain deploy/podinfo -n apps
  portolan explain deploy/podinfo.spec.replicas -n apps
  portolan explain 'cm/settings.data[app.conf]' --path clusters/production")]
pub(crate) struct ExplainArgs {
    /// The object, optionally with a field
    #[arg(value_name = "KIND/NAME[.FIELD]")]
    what: String,

    /// The object's namespace
    #[arg(short, long, value_name = "NAME", help_heading = "Selection")]
    namespace: Option<String>,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    output: Form,

    #[command(flatten)]
    secrets: SecretArgs,

    #[command(flatten)]
    repository: RepositoryArgs,
}

/// Output format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// A tree of causes
    Text,
    /// Records
    Json,
}

pub(crate) fn explain(args: &ExplainArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    args.secrets.apply(printer);
    let repository = args.repository.repository(app)?;
    let runs = ShownRuns::new(app);
    let rendered = render_for(&repository, &args.what, args.namespace.as_deref(), &runs)?;
    let objects = inventory::objects(&rendered);
    let targets = NamedObject::find(&args.what, args.namespace.as_deref(), &objects);
    let targets = targets.map_err(|error| match rendered.advice_on_missing_objects() {
        Some(advice) => error.hint(advice),
        None => error,
    })?;
    let several = rendered.clusters.len() > 1;
    let mut records = Vec::new();
    for target in &targets {
        let placed = target.placed;
        let explanation = match &target.field {
            None => explain_object(placed, &rendered),
            Some(path) => {
                let view = RepositoryView::new(&rendered, printer);
                let field = ExplainedField {
                    path,
                    shown: args.shown_value(placed, path, &view)?,
                    show_secrets: args.secrets.show_secrets,
                };
                explain_field(&repository, &rendered, placed, field, &runs)?
            }
        };
        let cluster = several.then_some(placed.cluster.name.as_str());
        match args.output {
            Form::Text => printer.data(print::text(&explanation, cluster, printer.canvas()))?,
            Form::Json => records.push(record([
                ("cluster", Node::string(placed.cluster.name.clone())),
                ("object", Node::string(placed.id.to_string())),
                ("owner", Node::string(placed.owner.to_string())),
                ("story", print::record(&explanation)),
            ])),
        }
    }
    if args.output == Form::Json {
        let answer = portolan_yaml::to_json(&list("ExplanationList", records));
        printer.data(indented(&answer.map_err(CommandError::user)?))?;
    }
    Ok(ExitStatus::Clean)
}

impl ExplainArgs {
    /// The value as it may be shown.
    fn shown_value(
        &self,
        placed: &PlacedObject<'_>,
        field: &FieldQuery,
        view: &RepositoryView,
    ) -> Result<String, CommandError> {
        if is_secret(placed.object.gvk()) && !self.secrets.show_secrets {
            return Ok("(hidden: --show-secrets shows it)".to_owned());
        }
        let shown = view.show(placed);
        let value = field.find(&shown)?;
        Ok(match &value.value {
            Value::Scalar(scalar) => scalar.text.to_string(),
            Value::List(_) | Value::Map(_) => portolan_yaml::write_kustomize(value)
                .unwrap_or_default()
                .trim_end()
                .to_owned(),
        })
    }
}
