//! A run on the nodes of a server: asked for, followed, and shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use camino::Utf8PathBuf;
use portolan_fleet::{Book, RecordedFiles, RunReport, compile};
use portolan_git::{FilesCommit, Repository};
use portolan_modules::{BookFiles, BookRepository};
use portolan_server::{FleetClient, FleetError, FleetMethod, request_key};
use serde_json::{Value, json};

use super::inputs::given_inputs;
use super::matrix::RunMatrix;
use super::screen::RunScreen;
use super::{RunArgs, RunFormat, plan_file, upload};
use crate::app::App;
use crate::commands::CommandResult;
use crate::commands::fleet::connection::told;
use crate::commands::fleet::lint::{BookFile, print_faults};
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::printer::ProgressStyle;

/// How long a server may be away while a run is followed.
const AWAY_TIME: Duration = Duration::from_mins(2);

/// How often a run is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(super) fn run(args: &RunArgs, app: &App) -> CommandResult {
    let client = args.connection.connect()?;
    let Some(request) = request(args, &client, app)? else {
        return Ok(ExitStatus::Failure);
    };
    let (book, body) = request;
    let namespace = &args.namespace.namespace;
    let path = format!("/api/v1alpha/namespaces/{namespace}/taskbooks/{book}/run");
    let made = app.wait(patiently(
        &client,
        FleetMethod::Post,
        &path,
        Some(&body.to_string()),
    ))??;
    let show = RunShow {
        namespace: namespace.clone(),
        is_check: args.check,
        format: args.output,
    };
    let status = follow_run(client, &made, &show, app)?;
    if let Some(path) = &args.plan_out
        && status != ExitStatus::Interrupted
    {
        let name = made["metadata"]["name"].as_str().unwrap_or_default();
        let run = format!("/api/v1alpha/namespaces/{namespace}/runs/{name}");
        plan_file::write_plan(path, &args.connection.connect()?, &run, app)?;
    }
    Ok(status)
}

/// How a run is shown.
pub(in crate::commands::fleet) struct RunShow {
    pub(in crate::commands::fleet) namespace: String,
    pub(in crate::commands::fleet) is_check: bool,
    pub(in crate::commands::fleet) format: RunFormat,
}

/// Waits for the end of a run that was just made, and shows it.
pub(in crate::commands::fleet) fn follow_run(
    client: FleetClient,
    made: &Value,
    show: &RunShow,
    app: &App,
) -> CommandResult {
    let Some(report) = wait_for_run(client, made, &show.namespace, app)? else {
        return Ok(ExitStatus::Interrupted);
    };
    match show.format {
        RunFormat::Json => app.printer.data(format!("{:#}\n", report.to_json()))?,
        RunFormat::Text => RunScreen::new(&app.printer, show.is_check).end_of_many(&report)?,
    }
    Ok(status(&report, show.is_check))
}

/// Waits for the end of a run that was just made. `None` if somebody interrupts that; the run goes on.
pub(in crate::commands::fleet) fn wait_for_run(
    client: FleetClient,
    made: &Value,
    namespace: &str,
    app: &App,
) -> Result<Option<RunReport>, CommandError> {
    let name = made["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    app.printer.say_unless_quiet(&format!("run {name}"));
    let run = FollowedRun {
        path: format!("/api/v1alpha/namespaces/{namespace}/runs/{name}"),
        client,
    };
    let mut seen = BTreeSet::new();
    // A terminal shows all nodes at once; elsewhere there is a line for each end.
    let is_live = app.printer.progress_style() == ProgressStyle::Line;
    let matrix = is_live.then(RunMatrix::new);
    let followed = app.wait(run.follow(|report| match &matrix {
        Some(matrix) => matrix.draw(report),
        None => tell_ends(report, &mut seen, app),
    }));
    if let Some(matrix) = &matrix {
        matrix.clear();
    }
    let Ok(report) = followed else {
        app.printer.note(&format!(
            "the run goes on; `portolan fleet runs cancel {name} -n {namespace}` ends it"
        ));
        return Ok(None);
    };
    report.map(Some)
}

/// The name of the book, and the body of the request; `None` if the book cannot be compiled.
fn request(
    args: &RunArgs,
    client: &FleetClient,
    app: &App,
) -> Result<Option<(String, Value)>, CommandError> {
    let selection = args.tags.selection();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    if let Some(path) = &args.apply_plan {
        let (book, plan) = plan_file::read_plan(path)?;
        let inputs = given_inputs(args, None, &app.printer)?;
        let key = request_key(now.unwrap_or_default());
        let body = json!({
            "plan": plan, "inputs": inputs, "tags": selection.tags, "skipTags": selection.skip, "dedupeKey": key,
        });
        return Ok(Some((book, body)));
    }
    let mut body = json!({
        "mode": if args.check { "check" } else { "apply" }, "tags": selection.tags, "skipTags": selection.skip,
        "nodes": args.nodes, "dedupeKey": request_key(now.unwrap_or_default()),
    });
    if let Some(selector) = &args.selector {
        body["selector"] = selector.as_str().into();
    }
    let (name, inputs) = match (&args.file, &args.book) {
        (Some(path), _) => {
            let Some((book, sent)) = own_book(args, path, client, app)? else {
                return Ok(None);
            };
            body["book"] = sent;
            body["allowDirty"] = args.allow_dirty.into();
            (
                book.name.clone(),
                given_inputs(args, Some(&book.inputs), &app.printer)?,
            )
        }
        (None, name) => {
            let name = name.clone().unwrap_or_default();
            check_secrets(args, client, &name, app)?;
            (name, given_inputs(args, None, &app.printer)?)
        }
    };
    body["inputs"] = Value::Object(inputs);
    Ok(Some((name, body)))
}

/// A book from a file, with the digests of the files that it uses. The server has them when this returns.
fn own_book(
    args: &RunArgs,
    path: &Utf8PathBuf,
    client: &FleetClient,
    app: &App,
) -> Result<Option<(Book, Value)>, CommandError> {
    let mut file = BookFile::read(path)?;
    let recorded = Arc::new(RecordedFiles::new(Arc::clone(&file.files)));
    file.files = Arc::clone(&recorded) as Arc<dyn BookFiles>;
    let book = match compile(&file.source(args.tags.selection())) {
        Ok(book) => book,
        Err(faults) => {
            print_faults(&faults, &file, &app.printer);
            return Ok(None);
        }
    };
    let used = recorded.take();
    let base = format!(
        "/api/v1alpha/namespaces/{}/taskbooks/{}/files",
        args.namespace.namespace, book.name
    );
    let files = app
        .wait(upload::send_files(client, &base, &used))?
        .map_err(told)?;
    let mut sent = json!({"file": file.name, "text": file.text, "files": files});
    if let Some(from) = commit_of(path, &file.text, &used) {
        sent["commit"] = from.commit.to_string().into();
        sent["dirty"] = (!from.changed.is_empty()).into();
    }
    Ok(Some((book, sent)))
}

/// The commit that a book and its files come from; `None` if they are in no work tree of git.
fn commit_of(
    path: &Utf8PathBuf,
    text: &str,
    used: &BTreeMap<Utf8PathBuf, Arc<[u8]>>,
) -> Option<FilesCommit> {
    let path = path.canonicalize_utf8().ok()?;
    let directory = path.parent()?;
    let repository = Repository::discover(directory).ok()?;
    // What is included from other repositories has its own commit.
    let used: Vec<(Utf8PathBuf, &[u8])> = used
        .iter()
        .filter(|(name, _)| BookRepository::split(name).is_none())
        .map(|(name, content)| (directory.join(name), content.as_ref()))
        .collect();
    let used = used
        .iter()
        .map(|(path, content)| (path.as_path(), *content));
    let book = (path.as_path(), text.as_bytes());
    repository.commit_of_files(used.chain([book])).ok()?
}

/// Refuses secret inputs in arguments, as far as the caller can see what the book declares.
fn check_secrets(
    args: &RunArgs,
    client: &FleetClient,
    book: &str,
    app: &App,
) -> Result<(), CommandError> {
    if args.inputs.is_empty() {
        return Ok(());
    }
    let path = format!(
        "/api/v1alpha/namespaces/{}/taskbooks/{book}",
        args.namespace.namespace
    );
    let Ok(found) = app.wait(client.request(FleetMethod::Get, &path, &[], None))? else {
        return Ok(());
    };
    for text in &args.inputs {
        let name = text.split('=').next().unwrap_or_default();
        if found["spec"]["inputs"][name]["secret"] == true {
            let message =
                format!("the input `{name}` is secret: arguments can be read by every user");
            let hint = format!("write it to a file and give --input-file {name}=FILE");
            return Err(CommandError::usage(message).hint(hint));
        }
    }
    Ok(())
}

/// A run that is looked at until it ends.
struct FollowedRun {
    client: FleetClient,
    path: String,
}

impl FollowedRun {
    /// Waits until the run has ended or stalled.
    async fn follow(&self, mut tell: impl FnMut(&RunReport)) -> Result<RunReport, CommandError> {
        loop {
            let report = self.report().await?;
            tell(&report);
            let found = self.get(&self.path).await?;
            let phase = found["status"]["phase"].as_str().unwrap_or_default();
            if matches!(phase, "succeeded" | "failed" | "cancelled" | "stalled") {
                // Everything was written before its phase was.
                let mut report = self.report().await?;
                report.reason = report.reason.or_else(|| {
                    let reason = found["status"]["reason"].as_str();
                    reason.map(str::to_owned)
                });
                return Ok(report);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn get(&self, path: &str) -> Result<Value, CommandError> {
        patiently(&self.client, FleetMethod::Get, path, None).await
    }

    async fn report(&self) -> Result<RunReport, CommandError> {
        let found = self.get(&format!("{}/nodes", self.path)).await?;
        RunReport::read(&found).ok_or_else(|| {
            CommandError::usage("the server answers in a way that is not known here")
        })
    }
}

/// Sends a request that may be sent twice. A server that is away for a while is waited for: the run goes on when it is back.
async fn patiently(
    client: &FleetClient,
    method: FleetMethod,
    path: &str,
    body: Option<&str>,
) -> Result<Value, CommandError> {
    let began = Instant::now();
    loop {
        let error = match client.request(method, path, &[], body).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let is_away = match &error {
            FleetError::Http(_) => true,
            FleetError::Refused { status, .. } => *status == 503,
            _ => false,
        };
        if !is_away || began.elapsed() > AWAY_TIME {
            return Err(told(error));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Tells when nodes come to their ends.
fn tell_ends(report: &RunReport, seen: &mut BTreeSet<String>, app: &App) {
    for node in &report.nodes {
        if node.ended().is_some() && seen.insert(node.name.clone()) {
            app.printer
                .say_unless_quiet(&format!("{}: {}", node.name, node.state));
        }
    }
    if let Some(reason) = &report.reason
        && seen.insert(format!("\0{reason}"))
    {
        app.printer.say_unless_quiet(reason);
    }
}

/// The exit code, which reflects every node.
pub(in crate::commands::fleet) fn status(report: &RunReport, is_check: bool) -> ExitStatus {
    let is_good = |state: &str| match state {
        "ok" | "skipped" => true,
        "changed" => !is_check,
        _ => false,
    };
    if is_good(&report.state) && report.nodes.iter().all(|node| is_good(&node.state)) {
        ExitStatus::Clean
    } else {
        ExitStatus::Findings
    }
}

#[cfg(test)]
mod tests {
    use portolan_fleet::NodePart;

    use super::*;

    fn report(state: &str, nodes: &[&str]) -> RunReport {
        let nodes = nodes.iter().map(|state| NodePart {
            name: "n".to_owned(),
            state: (*state).to_owned(),
            steps: Vec::new(),
            owed: Vec::new(),
            stopped: None,
        });
        RunReport {
            run: "r".to_owned(),
            state: state.to_owned(),
            reason: None,
            nodes: nodes.collect(),
        }
    }

    #[test]
    fn the_exit_code_reflects_every_node() {
        let clean = |state: &str, nodes: &[&str], is_check| {
            status(&report(state, nodes), is_check) == ExitStatus::Clean
        };
        assert!(clean("changed", &["ok", "changed", "skipped"], false));
        assert!(!clean("changed", &["ok", "changed"], true));
        assert!(clean("ok", &["ok"], true));
        for bad in ["failed", "unreachable", "unknown", "running"] {
            assert!(!clean("ok", &["ok", bad], false), "{bad}");
        }
        assert!(!clean("cancelled", &["ok"], false));
    }
}
