//! `portolan explain`: which file, patch, value or substitution produced an object or one of its fields.
//!
//! ```text
//! OBJECT        ──▶ its origin, step by step
//! OBJECT.field  ──▶ candidates (lines of the files it is made of) ──▶ trial: the line changed, rendered again
//!                                                              ──▶ the lines on which the field depends
//! ```
//!
//! A field is explained by experiment, not by guess: a line is named only if rendering with that line changed gives
//! another value. So it holds through templates, patches, generators and variables alike.

mod candidate_lines;
mod causes;
mod target;
mod trial;
mod value_path;

use std::sync::Arc;

use portolan_flux::{Cluster, Depth, Emitter};
use portolan_object::Step;
use portolan_secret::is_secret;
use portolan_yaml::{Node, Value};

use super::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::inventory::{self, Placed};
use crate::listing::{indented, list, record};
use crate::printer::Printer;
use crate::repository::{Rendered, RepositoryArgs};
use crate::secret::{RepositoryView, SecretArgs};
use candidate_lines::Role;
use causes::Causes;
use target::{FieldPath, Target};

/// Say which file, patch, value or substitution produced an object or a field
///
/// The object is named as in kubectl, `KIND/NAME`, and a field of it by its path: `deploy/web.spec.replicas`,
/// `deploy/web.spec.template.spec.containers[web].image`. Items of lists go by number or name.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan explain deploy/podinfo -n apps
  portolan explain deploy/podinfo.spec.replicas -n apps
  portolan explain 'cm/settings.data[app.conf]' --path clusters/production")]
pub(crate) struct ExplainArgs {
    /// The object, and perhaps a field of it
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

/// In which form an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// A tree of causes
    Text,
    /// Records
    Json,
}

pub(crate) fn explain(args: &ExplainArgs, printer: &Printer) -> CommandResult {
    args.secrets.apply(printer);
    let rendered = args.render(printer)?;
    let objects = inventory::objects(&rendered);
    let targets = Target::find(&args.what, args.namespace.as_deref(), &objects)?;
    let several = rendered.clusters.len() > 1;
    let mut records = Vec::new();
    for target in &targets {
        let story = match &target.field {
            None => Causes::of_object(target.placed, &made_of(target.placed, &rendered)),
            Some(field) => args.field_story(target.placed, field, &rendered, printer)?,
        };
        let cluster = several.then_some(target.placed.cluster.name.as_str());
        match args.output {
            Form::Text => printer.data(story.text(cluster, printer.canvas()))?,
            Form::Json => records.push(record([
                ("cluster", Node::string(target.placed.cluster.name.clone())),
                ("object", Node::string(target.placed.id.to_string())),
                ("owner", Node::string(target.placed.owner.to_string())),
                ("story", story.record()),
            ])),
        }
    }
    if args.output == Form::Json {
        let answer = portolan_yaml::to_json(&list("ExplanationList", records));
        printer.data(indented(&answer.map_err(CommandError::user)?))?;
    }
    Ok(ExitStatus::Clean)
}

/// What the release that gave an object is made of; nothing for objects of others.
fn made_of(placed: &Placed<'_>, rendered: &Rendered) -> Vec<Step> {
    let mut clusters = rendered.clusters.iter();
    let of_this =
        |(cluster, _): &&(Arc<Cluster>, _)| std::ptr::eq(cluster.as_ref(), placed.cluster);
    match (&placed.owner, clusters.find(of_this)) {
        (Emitter::Release(id), Some((_, rendering))) => {
            let release = rendering.releases.get(id);
            release.map_or_else(Vec::new, |release| release.made_of(&rendering.walk.index))
        }
        _ => Vec::new(),
    }
}

impl ExplainArgs {
    /// Renders the repository as far as the object takes: charts are fetched only if nothing else gives it.
    fn render(&self, printer: &Printer) -> Result<Rendered, CommandError> {
        let rendered = self.repository.render_at_hand(Depth::Releases, printer)?;
        let objects = inventory::objects(&rendered);
        match Target::find(&self.what, self.namespace.as_deref(), &objects) {
            Ok(_) => {
                drop(objects);
                Ok(rendered)
            }
            Err(_) => self.repository.render(Depth::Releases, printer),
        }
    }

    /// Tries which lines the field depends on.
    fn field_story(
        &self,
        placed: &Placed<'_>,
        field: &FieldPath,
        rendered: &Rendered,
        printer: &Printer,
    ) -> Result<Causes, CommandError> {
        let value = field.find(placed.object.node())?;
        let (candidates, substitutions) =
            candidate_lines::candidates(placed, field, value, rendered);
        let mut deciding =
            trial::deciding(placed, field, value, candidates, &self.repository, printer)?;
        if deciding
            .iter()
            .any(|candidate| candidate.role == Role::Variable)
        {
            deciding.extend(substitutions);
        }
        let shown = self.shown_value(placed, field, &RepositoryView::new(rendered, printer))?;
        Ok(Causes::of_field(
            placed,
            shown,
            deciding,
            self.secrets.show_secrets,
        ))
    }

    /// The value as it may be shown.
    fn shown_value(
        &self,
        placed: &Placed<'_>,
        field: &FieldPath,
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
