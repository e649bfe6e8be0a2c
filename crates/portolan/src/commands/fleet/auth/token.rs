//! `portolan fleet auth token`: makes, lists and ends tokens.

use portolan_server::FleetMethod;
use serde_json::json;

use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::fleet::connection::{ConnectionArgs, told};
use crate::commands::fleet::shown;
use crate::exit::ExitStatus;
use crate::table::{Cell, Table};

/// Where the server has its tokens.
const PATH: &str = "/api/v1alpha/auth/tokens";

/// Make, list and end tokens
///
/// A new token is printed once and cannot be read again. You can make tokens for users who have no right that you do not have.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan fleet auth token --user ci --life 720h > ci.token
  portolan fleet auth token --list
  portolan fleet auth token --end 0123456789abcdef")]
pub(super) struct TokenArgs {
    /// The user that the token is for
    #[arg(long, value_name = "NAME", required_unless_present_any = ["list", "end"], help_heading = "Token")]
    user: Option<String>,

    /// A group of the user
    #[arg(long = "group", value_name = "NAME", help_heading = "Token")]
    groups: Vec<String>,

    /// How long the token works, as in 720h; without it, until it is ended
    #[arg(long, value_name = "TIME", help_heading = "Token")]
    life: Option<String>,

    /// What it is for
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true,
        help_heading = "Token"
    )]
    description: String,

    /// List tokens
    #[arg(long, conflicts_with = "end", help_heading = "Output")]
    list: bool,

    /// End the token with this id
    #[arg(long, value_name = "ID", help_heading = "Token")]
    end: Option<String>,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub(super) fn token(args: &TokenArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    if let Some(id) = &args.end {
        let path = format!("{PATH}/{id}");
        let asked = client.request(FleetMethod::Delete, &path, &[], None);
        app.runtime()?.block_on(asked).map_err(told)?;
        app.printer.data(format!("token {id} ended\n"))?;
        return Ok(ExitStatus::Clean);
    }
    if args.list {
        let asked = client.request(FleetMethod::Get, PATH, &[], None);
        let answer = app.runtime()?.block_on(asked).map_err(told)?;
        let mut table = Table::new(["ID", "USER", "GROUPS", "EXPIRES", "DESCRIPTION"]);
        for one in answer["items"].as_array().into_iter().flatten() {
            let text = |path: &str| Cell::from(shown::text(one, path));
            table.push(vec![
                Cell::name(shown::text(one, "id")),
                text("user"),
                text("groups"),
                text("expires"),
                text("description"),
            ]);
        }
        app.printer.data(table.render(app.printer.canvas()))?;
        return Ok(ExitStatus::Clean);
    }
    let body = json!({"user": args.user, "groups": args.groups, "life": args.life, "description": args.description});
    let body = body.to_string();
    let asked = client.request(FleetMethod::Post, PATH, &[], Some(&body));
    let answer = app.runtime()?.block_on(asked).map_err(told)?;
    app.printer.data(format!(
        "{}\n",
        answer["token"].as_str().unwrap_or_default()
    ))?;
    Ok(ExitStatus::Clean)
}
