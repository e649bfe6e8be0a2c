//! `portolan rollout get`: slots, pods, weights and evidence of one rollout, once or repeatedly.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use portolan_canary::{Rollout, metric_line};
use portolan_cluster::Resource;
use portolan_rollout::Slot;
use portolan_rollout::objects::{ROLLOUT_LABEL, SLOT_LABEL};
use serde_json::Value;

use super::cluster_args::{Found, OneArgs, refused};
use crate::app::App;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;

/// Show one rollout: slots, pods, weights and evidence
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout get web
  portolan rollout get web -w
  portolan rollout get shop/web -o json")]
pub(crate) struct GetArgs {
    #[command(flatten)]
    one: OneArgs,

    /// Show it again whenever it changes, until Ctrl-C
    #[arg(short, long, help_heading = "Output")]
    watch: bool,

    /// Output format
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        help_heading = "Output"
    )]
    output: Format,
}

/// The forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A tree
    Table,
    /// The object as YAML
    Yaml,
    /// The object as JSON
    Json,
}

/// The pause between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// So many moments of the evidence are drawn.
const DRAWN: usize = 60;

pub(crate) fn get(args: &GetArgs, app: &App) -> CommandResult {
    let printer = &app.printer;
    app.runtime()?.block_on(async {
        let found = args.one.find().await?;
        let mut lines: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let mut shown = String::new();
        loop {
            let text = look(&found, args.output, &mut lines).await?;
            if text != shown {
                printer.data(&text)?;
                shown = text;
            }
            if !args.watch {
                return Ok(ExitStatus::Clean);
            }
            tokio::time::sleep(PAUSE).await;
        }
    })
}

async fn look(
    found: &Found,
    format: Format,
    lines: &mut BTreeMap<String, Vec<f64>>,
) -> Result<String, CommandError> {
    let object = found.object().await?;
    match format {
        Format::Json => return Ok(format!("{object:#}\n")),
        Format::Yaml => {
            let node = portolan_yaml::from_json(&object.to_string()).map_err(CommandError::user)?;
            return portolan_yaml::write_kustomize(&node).map_err(CommandError::user);
        }
        Format::Table => {}
    }
    let rollout = Rollout::read(&object).map_err(CommandError::user)?;
    let mut pods = Vec::new();
    let mut query = Resource::in_namespaces("v1", "Pod", "pods").query(Some(&found.namespace));
    query.labels = format!("{ROLLOUT_LABEL}={}", found.name);
    let listed = found.cluster.list_whole(&query, |pod| pods.push(pod)).await;
    listed.map_err(refused)?;
    Ok(tree(&rollout, &pods, lines))
}

fn tree(rollout: &Rollout, pods: &[Value], lines: &mut BTreeMap<String, Vec<f64>>) -> String {
    let Some(status) = &rollout.status else {
        return format!(
            "{}/{}  no operator has seen it\n",
            rollout.namespace, rollout.name
        );
    };
    let hold = status
        .hold
        .as_ref()
        .map(|hold| format!("  ({}: {})", hold.reason, hold.message));
    let mut text = format!(
        "{}/{}  {}{}\n",
        rollout.namespace,
        rollout.name,
        status.phase,
        hold.unwrap_or_default()
    );
    for slot in Slot::BOTH {
        let Some(plan) = status.slots.get(slot) else {
            continue;
        };
        let share = status
            .traffic
            .as_ref()
            .map_or(0, |traffic| *traffic.shares.get(slot));
        let role = if status.stable_slot() == slot {
            "stable"
        } else {
            "new"
        };
        let _ = writeln!(
            text,
            "├─ {}-{slot}  {role}  {}  {share} % of the traffic, {} pods",
            rollout.name, plan.revision, plan.replicas
        );
        let of_slot = pods
            .iter()
            .filter(|pod| pod["metadata"]["labels"][SLOT_LABEL] == slot.to_string());
        for pod in of_slot {
            let ready = if is_ready(pod) { "ready" } else { "not ready" };
            let _ = writeln!(
                text,
                "│  └─ {}  {ready}",
                pod["metadata"]["name"].as_str().unwrap_or_default()
            );
        }
    }
    let analysis = status
        .canary
        .as_deref()
        .map_or(&rollout.spec.analysis, |canary| &canary.plan.analysis);
    for summary in status.evidence() {
        let seen = lines.entry(summary.name.clone()).or_default();
        seen.push(summary.ln_rollback);
        let from = seen.len().saturating_sub(DRAWN);
        let drawn = sparkline(&seen[from..], (1.0 / analysis.false_rollback_rate).ln());
        let attempt = status.canary.as_deref().map(|canary| canary.attempt);
        let line = metric_line(&summary, analysis, attempt);
        let _ = writeln!(text, "{line}\n  {drawn}");
    }
    text
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
    ready.any(|condition| condition["status"] == "True")
}

/// Evidence over time as a line, full at the height that rolls back.
fn sparkline(values: &[f64], full: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |value: &f64| {
        let part = (value / full.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        BARS[(part * 7.0).round() as usize]
    };
    values.iter().map(bar).collect()
}
