//! Events of a build that serves them, as they come.

use std::time::Duration;

use camino::Utf8Path;
use portolan_http::{Client, HttpOptions, Request, Secret};
use portolan_ship::{ServedRun, ShipRun};

use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// The variable that holds a token.
const TOKEN: &str = "PORTOLAN_TOKEN";

/// How long a server may say nothing: it says something every 15 seconds.
const SILENCE: Duration = Duration::from_mins(1);

/// How long events may come.
const LONGEST: Duration = Duration::from_hours(24 * 7);

/// Which events.
pub(super) struct Wanted<'a> {
    pub(super) run: Option<&'a str>,
    pub(super) after: u64,
    pub(super) follow: bool,
}

/// The token of a server: from the environment, or from the run in a store that is served there.
pub(super) fn token(server: &str, store: Option<&Utf8Path>) -> Option<Secret> {
    if let Ok(token) = std::env::var(TOKEN) {
        return Some(token.into());
    }
    let runs = ShipRun::list(store?).ok()?.into_iter().rev();
    let mut sessions = runs.filter_map(|run| ServedRun::of(&run).ok().flatten());
    let session = sessions.find(|session| session.server == server.trim_end_matches('/'));
    session.map(|session| session.token.into())
}

/// Prints events until there are no more.
pub(super) async fn print(
    server: &str,
    wanted: &Wanted<'_>,
    token: Option<Secret>,
    printer: &Printer,
) -> CommandResult {
    let options = HttpOptions {
        idle_timeout: SILENCE,
        request_timeout: LONGEST,
        slow_start: LONGEST,
        ..HttpOptions::default()
    };
    let client = Client::new(&options).map_err(CommandError::user)?;
    let run = wanted
        .run
        .map(|run| format!("&run={run}"))
        .unwrap_or_default();
    let (after, follow) = (wanted.after, wanted.follow);
    let server = server.trim_end_matches('/');
    let url = format!("{server}/api/ship/v1/events?after={after}&follow={follow}{run}");
    let mut request = Request::parse(&url).map_err(CommandError::user)?;
    if let Some(token) = &token {
        request = request.bearer(token);
    }
    let response = client.send(&request).await.map_err(CommandError::user)?;
    if response.status() == 401 {
        let error = CommandError::usage(format!("`{server}` wants the token of its run"));
        return Err(error.hint(format!(
            "set {TOKEN}, or name the store of the build: `--store DIR`"
        )));
    }
    let mut response = response.success().map_err(CommandError::user)?;
    let mut rest = Vec::new();
    while let Some(piece) = response.chunk(u64::MAX).await.map_err(CommandError::user)? {
        rest.extend_from_slice(piece.as_ref());
        // Whole lines only; an empty one says that the server is still there.
        let end = rest
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let lines: Vec<u8> = rest.drain(..end).collect();
        let lines = String::from_utf8_lossy(&lines);
        let lines = lines.lines().filter(|line| !line.is_empty());
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        printer.data(text)?;
    }
    Ok(ExitStatus::Clean)
}
