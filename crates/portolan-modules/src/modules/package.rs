//! `package`: packages are installed in a version, are the newest, or are absent.
//!
//! `apt-get --simulate` says what would happen before anything does: a package that would go although nobody asked for
//! it fails the step. What is installed is read from the database of dpkg, so a step with nothing to do starts no
//! program.

mod apt;

use std::time::Duration;

use self::apt::Apt;
use crate::action::{Action, Applied, ModuleError};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::Plan;
use crate::view::View;

/// The module `package`.
pub(super) static PACKAGE: ModuleDefinition = ModuleDefinition {
    name: "package",
    summary: "Installs, updates, holds or removes packages with apt.",
    parameters: &[
        ParameterDefinition::optional(
            "name",
            ParameterType::Text,
            "A package; `name:i386` for another architecture. A virtual one stands for its providers.",
        ),
        ParameterDefinition::optional(
            "names",
            ParameterType::TextList,
            "Several packages, in place of `name`.",
        ),
        ParameterDefinition::optional(
            "version",
            ParameterType::Text,
            "The version of `name`, with its epoch if it has one.",
        ),
        ParameterDefinition::optional(
            "state",
            ParameterType::Word(&["present", "latest", "absent"]),
            "`present`, which is the default, `latest`, or `absent`.",
        ),
        ParameterDefinition::optional(
            "hold",
            ParameterType::Boolean,
            "Whether the version is held afterwards. A held package is changed only with `hold: false`.",
        ),
        ParameterDefinition::optional(
            "purge",
            ParameterType::Boolean,
            "Whether settings go with an absent package; they stay by default.",
        ),
        ParameterDefinition::optional(
            "refresh",
            ParameterType::Boolean,
            "Whether the lists of packages are fetched before something is installed.",
        ),
        ParameterDefinition::optional(
            "lockTimeout",
            ParameterType::Duration,
            "How long another program that installs packages is waited for; five minutes by default.",
        ),
        ParameterDefinition::optional(
            "allowDowngrade",
            ParameterType::Boolean,
            "Whether an older version may replace a newer one.",
        ),
        ParameterDefinition::optional(
            "repair",
            ParameterType::Boolean,
            "Whether an interrupted dpkg is completed first; the step fails by default.",
        ),
        ParameterDefinition::optional(
            "provider",
            ParameterType::Word(&["apt"]),
            "What installs packages; the one whose database the host has by default.",
        ),
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

/// How long another program is waited for unless the step says otherwise.
const DEFAULT_LOCK_TIMEOUT: Duration = Duration::from_mins(5);

struct Package {
    names: Vec<String>,
    version: Option<String>,
    wanted: Wanted,
    hold: Option<bool>,
    refreshes: bool,
    lock_timeout: Duration,
    allows_downgrade: bool,
    repairs: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Present,
    Latest,
    Absent { purge: bool },
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let names = match parameters.exactly_one(&["name", "names"])? {
        "name" => vec![parameters.line("name")?.to_owned()],
        _ => parameters.text_list("names")?,
    };
    for name in &names {
        if !is_package(name) {
            parameters.fault("name", format!("`{name}` is not the name of a package"));
        }
    }
    let version = parameters.line("version").map(str::to_owned);
    let is_version = |text: &String| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".+-:~_^".contains(&byte))
            && !text.starts_with('-')
    };
    if !version.as_ref().is_none_or(is_version) {
        parameters.fault("version", "has letters that no version has");
    }
    if version.is_some() && names.len() != 1 {
        parameters.fault("version", "is for one package");
    }
    let purge = parameters.boolean("purge", false);
    let wanted = match parameters.word("state") {
        Some("absent") => Wanted::Absent { purge },
        Some("latest") => Wanted::Latest,
        _ => Wanted::Present,
    };
    if version.is_some() && wanted != Wanted::Present {
        parameters.fault("version", "is for `state: present`");
    }
    parameters.word("provider");
    Some(Box::new(Package {
        names,
        version,
        wanted,
        hold: parameters.optional_boolean("hold"),
        refreshes: parameters.boolean("refresh", false),
        lock_timeout: parameters
            .duration("lockTimeout")
            .unwrap_or(DEFAULT_LOCK_TIMEOUT),
        allows_downgrade: parameters.boolean("allowDowngrade", false),
        repairs: parameters.boolean("repair", false),
    }))
}

/// Names as Debian's policy has them, with an architecture.
fn is_package(name: &str) -> bool {
    let (name, architecture) = name.split_once(':').unwrap_or((name, "all"));
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    name.bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric())
        && name.bytes().all(is_letter)
        && !architecture.is_empty()
        && architecture
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

impl Action for Package {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        Apt::find(view.host)?.plan(self, view)
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let apt = Apt::find(host)?;
        let now = apt.plan(self, &View::of(host))?;
        plan.confirm(&now)?;
        apt.apply(self, host, &now)
    }

    /// With `refresh`, a look cannot tell without fetching; without, a plan can.
    fn verify(&self, host: &Host) -> Result<(), ModuleError> {
        match self.plan(&View::of(host))?.changes().first() {
            Some(change) => Err(ModuleError::NotConverged {
                subject: change.subject.to_string(),
            }),
            None => Ok(()),
        }
    }
}
