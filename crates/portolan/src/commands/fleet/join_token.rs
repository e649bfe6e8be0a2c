//! `portolan fleet join-token`: tokens that machines become nodes with.

use portolan_server::FleetMethod;
use serde_json::{Map, Value, json};

use super::connection::{ConnectionArgs, told};
use super::shown;
use crate::app::App;
use crate::cli::Later;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::table::{Cell, Table};

const PATH: &str = "/api/v1alpha/join-tokens";

/// Make, list and end tokens that machines become nodes with
#[derive(Debug, clap::Args)]
pub(crate) struct JoinTokenArgs {
    #[command(subcommand)]
    command: JoinTokenCommand,
}

#[derive(Debug, clap::Subcommand)]
enum JoinTokenCommand {
    /// Make a token
    Create(Later<CreateArgs>),
    /// End a token; nodes that came with it stay
    End(Later<EndArgs>),
    /// List tokens
    List(Later<ListArgs>),
}

/// Make a token
///
/// The token and the pin of the server's authority are printed once. An agent proves that it knows the token without sending it, and
/// the server keeps only a public key.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet join-token create --uses 10 --label role=web --life 2h
  portolan fleet join-token create --name-pattern 'web-*' -o json")]
struct CreateArgs {
    /// How many nodes it is good for
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1,
        help_heading = "Token"
    )]
    uses: u32,

    /// A label of the nodes, as KEY=VALUE
    #[arg(long = "label", value_name = "LABEL", help_heading = "Token")]
    labels: Vec<String>,

    /// How long the token works, at most 2160h
    #[arg(
        long,
        value_name = "TIME",
        default_value = "24h",
        help_heading = "Token"
    )]
    life: String,

    /// What names of nodes must look like; `*` stands for any text
    #[arg(
        long,
        value_name = "PATTERN",
        default_value = "*",
        help_heading = "Token"
    )]
    name_pattern: String,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    output: TokenFormat,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Output format of a new token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TokenFormat {
    /// One line for each thing
    Text,
    /// The server's answer
    Json,
}

/// End a token; nodes that came with it stay
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet join-token list
  portolan fleet join-token end 4f1c09be")]
struct EndArgs {
    /// The id of the token
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// List tokens
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet join-token list")]
struct ListArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(crate) fn join_token(args: &JoinTokenArgs, app: &App) -> CommandResult {
    match &args.command {
        JoinTokenCommand::Create(args) => create(args, app),
        JoinTokenCommand::End(args) => {
            let path = format!("{PATH}/{}", args.id);
            let client = args.connection.connect()?;
            let asked = client.request(FleetMethod::Delete, &path, &[], None);
            app.runtime()?.block_on(asked).map_err(told)?;
            app.printer
                .data(format!("join token {} ended\n", args.id))?;
            Ok(ExitStatus::Clean)
        }
        JoinTokenCommand::List(args) => list(args, app),
    }
}

fn create(args: &CreateArgs, app: &App) -> CommandResult {
    let mut labels = Map::new();
    for label in &args.labels {
        let Some((key, value)) = label.split_once('=') else {
            let message = format!("`{label}` is not a label such as role=web");
            return Err(CommandError::usage(message));
        };
        labels.insert(key.to_owned(), value.into());
    }
    let body = json!({
        "uses": args.uses, "labels": labels, "life": args.life, "namePattern": args.name_pattern,
    });
    let client = args.connection.connect()?;
    let body = body.to_string();
    let asked = client.request(FleetMethod::Post, PATH, &[], Some(&body));
    let answer = app.runtime()?.block_on(asked).map_err(told)?;
    let text = |key: &str| answer[key].as_str().unwrap_or_default();
    app.printer.data(match args.output {
        TokenFormat::Json => format!("{answer:#}\n"),
        TokenFormat::Text => format!(
            "token   {}\nca pin  {}\nends    {}\n",
            text("token"),
            text("caPin"),
            text("expires")
        ),
    })?;
    Ok(ExitStatus::Clean)
}

fn list(args: &ListArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let asked = client.request(FleetMethod::Get, PATH, &[], None);
    let answer = app.runtime()?.block_on(asked).map_err(told)?;
    let mut table = Table::new(["ID", "USES", "NAMES", "LABELS", "EXPIRES", "BY"]);
    for one in answer["items"].as_array().into_iter().flatten() {
        let text = |path: &str| Cell::from(shown::text(one, path));
        table.push(vec![
            Cell::name(shown::text(one, "id")),
            text("uses"),
            text("namePattern"),
            Cell::from(labels(&one["labels"])),
            text("expires"),
            text("createdBy"),
        ]);
    }
    app.printer.data(table.render(app.printer.canvas()))?;
    Ok(ExitStatus::Clean)
}

/// Labels as `KEY=VALUE,…`.
pub(super) fn labels(labels: &Value) -> String {
    let all = labels.as_object().into_iter().flatten();
    let all: Vec<String> = all
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    all.join(",")
}
