//! `portolan rollout simulate`: how often a rule decides wrongly.

use camino::{Utf8Path, Utf8PathBuf};
use portolan_judge::simulate::{Rule, Scenario, Summary};
use portolan_object::API_VERSION;
use serde_json::json;

use super::output_args::{Format, OutputArgs};
use super::settings_args::SettingsArgs;
use crate::commands::CommandResult;
use crate::error::CommandError;
use crate::exit::ExitStatus;
use crate::input::Input;
use crate::printer::Printer;
use crate::table::{Cell, Table};

/// Pretend many releases, and count how often a rule decides wrongly
///
/// The weight of the canary goes from 5 % to 50 % by 5 % a minute; a release that is not decided after an hour is held.
/// The same seed gives the same answer.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  portolan rollout simulate
  portolan rollout simulate --scenario 9x-below-the-line --rule flagger
  portolan rollout simulate --scenario mine.json --runs 10000 --seed 7 -o json")]
pub(crate) struct SimulateArgs {
    /// A scenario by name, or a JSON file that describes one; all known ones when not given
    #[arg(long, value_name = "NAME|FILE", help_heading = "Simulation")]
    scenario: Option<String>,

    /// The rule that decides
    #[arg(
        long,
        value_name = "RULE",
        default_value = "portolan",
        help_heading = "Simulation"
    )]
    rule: RuleName,

    /// How many releases of each scenario
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "Simulation")]
    runs: u32,

    /// Where chance begins
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1,
        help_heading = "Simulation"
    )]
    seed: u64,

    /// Seconds between two looks of Portolan's own rules; the others look once a minute
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=60), help_heading = "Simulation")]
    interval: u32,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    settings: SettingsArgs,
}

/// A rule that decides about releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum RuleName {
    /// The sequential test with its corrections
    Portolan,
    /// The sequential test without corrections
    Plain,
    /// Flagger's: five failed checks of the success rate in all
    Flagger,
    /// Argo Rollouts': more than three failed measurements of the success rate
    Argo,
}

pub(crate) fn simulate(args: &SimulateArgs, printer: &Printer) -> CommandResult {
    let rule = args.rule()?;
    let scenarios = match &args.scenario {
        Some(scenario) => vec![named(scenario)?],
        None => Scenario::known(),
    };
    let answers: Vec<(Scenario, Summary)> = scenarios
        .into_iter()
        .map(|scenario| {
            let summary =
                portolan_judge::simulate::simulate(&scenario, &rule, args.runs, args.seed);
            (scenario, summary)
        })
        .collect();
    match args.output.format {
        Format::Json => printer.data(as_json(&answers))?,
        Format::Table => printer.data(as_table(&answers, printer))?,
    }
    Ok(ExitStatus::Clean)
}

impl SimulateArgs {
    fn rule(&self) -> Result<Rule, CommandError> {
        let portolan = |is_corrected| {
            Ok(Rule::Portolan {
                settings: self.settings.settings(is_corrected)?,
                interval_seconds: self.interval,
            })
        };
        match self.rule {
            RuleName::Portolan => portolan(true),
            RuleName::Plain => portolan(false),
            RuleName::Flagger => Ok(Rule::Flagger { threshold: 5 }),
            RuleName::Argo => Ok(Rule::Argo { failure_limit: 3 }),
        }
    }
}

/// A scenario that is known, or that a file describes.
fn named(scenario: &str) -> Result<Scenario, CommandError> {
    let unknown = match Scenario::named(scenario) {
        Ok(known) => return Ok(known),
        Err(unknown) => unknown,
    };
    if scenario != "-" && !Utf8Path::new(scenario).exists() {
        return Err(CommandError::user(unknown)
            .hint("a file that describes a scenario in JSON can be named instead"));
    }
    let input = Input::read(&Utf8PathBuf::from(scenario))?;
    let read: Scenario = serde_json::from_slice(&input.bytes).map_err(|error| {
        let error = anyhow::Error::new(error);
        CommandError::user(error.context(format!("`{}` describes no scenario", input.name)))
    })?;
    read.check().map_err(CommandError::user)?;
    Ok(read)
}

fn as_json(answers: &[(Scenario, Summary)]) -> String {
    let items: Vec<_> = answers
        .iter()
        .map(|(scenario, summary)| json!({"scenario": scenario, "summary": summary}))
        .collect();
    let document = json!({
        "apiVersion": API_VERSION,
        "kind": "RolloutSimulation",
        "items": items,
    });
    format!("{document:#}\n")
}

fn as_table(answers: &[(Scenario, Summary)], printer: &Printer) -> String {
    let mut table = Table::new([
        "SCENARIO",
        "ROLLED BACK",
        "PROMOTED",
        "HELD",
        "MINUTES TO ROLLBACK",
        "TO PROMOTION",
        "EXCESS BAD",
    ]);
    for (scenario, summary) in answers {
        let share = |count: u32| {
            let share = f64::from(count) * 100.0 / f64::from(summary.runs.max(1));
            Cell::from(format!("{share:.1} %").as_str())
        };
        let minutes = |minutes: Option<f64>| {
            let text = minutes.map_or_else(|| "-".to_owned(), |minutes| format!("{minutes:.1}"));
            Cell::from(text.as_str())
        };
        table.push(vec![
            Cell::name(scenario.name.as_str()),
            share(summary.rolled_back),
            share(summary.promoted),
            share(summary.held),
            minutes(summary.minutes_to_rollback),
            minutes(summary.minutes_to_promote),
            Cell::from(format!("{:.1}", summary.mean_excess_bad).as_str()),
        ]);
    }
    table.render(printer.canvas())
}
