//! The file of a plan: what a check on a server found, with the digest by which it is applied.

use camino::Utf8Path;
use portolan_server::{FleetClient, FleetMethod};
use serde_json::{Value, json};

use crate::app::App;
use crate::commands::fleet::connection::told;
use crate::error::CommandError;
use crate::input::Input;

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
    let text = format!("{plan:#}\n");
    let masked = app.printer.secrets().mask().text(&text).into_owned();
    portolan_files::write_file(path, masked.as_bytes()).map_err(CommandError::user)
}

/// The book of a plan, and the body of a request that applies it.
pub(super) fn read_plan(path: &Utf8Path) -> Result<(String, Value), CommandError> {
    let bytes = Input::read(path)?.bytes;
    let plan: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let read = || {
        let (run, digest) = (text(&plan["run"])?, text(&plan["digest"])?);
        let book = text(&plan["plan"]["book"])?;
        Some((book, json!({"run": run, "digest": digest})))
    };
    read().ok_or_else(|| {
        let message = format!("`{path}` is no plan that a server can apply");
        CommandError::usage(message).hint("`portolan fleet run --check --plan-out FILE` writes one")
    })
}
