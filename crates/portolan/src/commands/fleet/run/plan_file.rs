//! The file of a plan: what a check on a server found, with the digest by which it is applied.

use camino::Utf8Path;
use portolan_digest::Digest;
use portolan_object::NameRule;
use portolan_server::{FleetClient, FleetMethod};
use serde_json::{Value, json};

use crate::app::App;
use crate::commands::fleet::connection::told;
use crate::error::CommandError;
use crate::input::Input;

/// The field with the digest of what the file shows: secrets are masked in it, so it is not the digest of the server.
const CONTENT: &str = "shownDigest";

/// Writes the plan of a check that has ended, whole or not at all.
pub(super) fn write_plan(
    path: &Utf8Path,
    client: &FleetClient,
    run: &str,
    app: &App,
) -> Result<(), CommandError> {
    let route = format!("{run}/plan");
    let asked = client.request(FleetMethod::Get, &route, &[], None);
    let plan = app.wait(asked)?.map_err(told)?;
    let masked = app.printer.secrets().mask();
    let mut shown: Value =
        serde_json::from_str(&masked.text(&plan.to_string())).map_err(CommandError::user)?;
    shown[CONTENT] = content_digest(&shown).into();
    let text = format!("{shown:#}\n");
    portolan_files::write_file(path, text.as_bytes()).map_err(CommandError::user)
}

/// The book of a plan, and the body of a request that applies it.
pub(super) fn read_plan(path: &Utf8Path) -> Result<(String, Value), CommandError> {
    let bytes = Input::read(path)?.bytes;
    let plan: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let read = || {
        let (run, digest) = (text(&plan["run"])?, text(&plan["digest"])?);
        // It becomes a part of a path.
        let book = text(&plan["plan"]["book"]).filter(|book| NameRule::Subdomain.fits(book))?;
        Some((book, json!({"run": run, "digest": digest})))
    };
    if plan[CONTENT]
        .as_str()
        .is_some_and(|told| told != content_digest(&plan))
    {
        let message = format!("`{path}` was changed after it was written");
        return Err(CommandError::usage(message)
            .hint("only a plan as a server made it can be applied: check again"));
    }
    read().filter(|_| plan[CONTENT].is_string()).ok_or_else(|| {
        let message = format!("`{path}` is no plan that a server can apply");
        CommandError::usage(message).hint("`portolan fleet run --check --plan-out FILE` writes one")
    })
}

/// The digest of what a file shows.
fn content_digest(plan: &Value) -> String {
    Digest::of(plan["plan"].to_string().as_bytes()).to_string()
}
