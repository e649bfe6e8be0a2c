//! `package`: packages are installed in a version, are the newest, or are absent.
//!
//! `apt-get --simulate` and `dnf --assumeno` say what would happen before anything does: a package that would go although
//! nobody asked for it fails the step. What is installed is read from the database of dpkg or rpm.

mod apt;
mod dnf;

use std::time::Duration;

use serde_json::{Map, Value, json};

use self::apt::Apt;
use self::dnf::Dnf;
use crate::action::{Action, Applied, ModuleError};
use crate::ahead::{PredictedPackage, Prediction};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::package_system::{PackageSystem, rpm_database};
use crate::parameters::Parameters;
use crate::plan::{Change, Plan, Subject};
use crate::state::State;
use crate::view::View;

/// The module `package`.
pub(super) static PACKAGE: ModuleDefinition = ModuleDefinition {
    name: "package",
    summary: "Installs, updates, holds or removes packages with apt or dnf.",
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
            "The version of `name`, with its epoch if it has one; for dnf with or without its release.",
        ),
        ParameterDefinition::optional(
            "state",
            ParameterType::Word(&["present", "latest", "absent"]),
            "`present`, which is the default, `latest`, or `absent`.",
        ),
        ParameterDefinition::optional(
            "hold",
            ParameterType::Boolean,
            "For apt: whether the version is held afterwards. A held package is changed only with `hold: false`.",
        ),
        ParameterDefinition::optional(
            "purge",
            ParameterType::Boolean,
            "For apt: whether settings go with an absent package; they stay by default.",
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
            "For apt: whether an interrupted dpkg is completed first; the step fails by default.",
        ),
        ParameterDefinition::optional(
            "provider",
            ParameterType::Word(&["apt", "dnf"]),
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
    /// `None` if the host decides.
    provider: Option<Provider>,
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
enum Provider {
    Apt,
    Dnf,
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
    let provider = match parameters.word("provider") {
        Some("apt") => Some(Provider::Apt),
        Some("dnf") => Some(Provider::Dnf),
        _ => None,
    };
    Some(Box::new(Package {
        provider,
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

/// Names as Debian's policy and rpm have them, with an architecture.
fn is_package(name: &str) -> bool {
    let (name, architecture) = name.split_once(':').unwrap_or((name, "all"));
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte);
    name.bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric())
        && name.bytes().all(is_letter)
        && !architecture.is_empty()
        && architecture
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte))
}

impl Action for Package {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        match self.system(view.host)? {
            PackageSystem::Apt => Apt::find(view.host)?.plan(self, view),
            PackageSystem::Dnf { database } => Dnf::find(view.host, database)?.plan(self, view),
        }
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let view = View::of(host);
        match self.system(host)? {
            PackageSystem::Apt => {
                let apt = Apt::find(host)?;
                let now = apt.plan(self, &view)?;
                plan.confirm(&now)?;
                apt.apply(self, host, &now)
            }
            PackageSystem::Dnf { database } => {
                let dnf = Dnf::find(host, database)?;
                plan.confirm(&dnf.plan(self, &view)?)?;
                dnf.apply(self, host, database)
            }
        }
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

impl Package {
    /// What manages the packages: what the step says, or what has a database here.
    fn system(&self, host: &Host) -> Result<PackageSystem, ModuleError> {
        let found = PackageSystem::find(host)?;
        match self.provider {
            None => Ok(found),
            Some(Provider::Apt) if found == PackageSystem::Apt => Ok(found),
            Some(Provider::Dnf) if found != PackageSystem::Apt => Ok(found),
            // Both may be there, and then the step decides.
            Some(Provider::Dnf) => match rpm_database(host)? {
                Some(database) => Ok(PackageSystem::Dnf { database }),
                None => Err(self.no_database("dnf")),
            },
            Some(Provider::Apt) => Err(self.no_database("apt")),
        }
    }

    fn no_database(&self, provider: &str) -> ModuleError {
        let reason = format!("the host has no packages of {provider}");
        ModuleError::failed("change packages", self.names.join(", "), reason)
    }

    /// What will change if the lists of packages are fetched first; `None` if only the lists show it.
    fn after_refresh(
        &self,
        names: &[&str],
        version: impl Fn(&str) -> Option<String>,
    ) -> Option<Vec<Change>> {
        if self.wanted == Wanted::Latest {
            return None;
        }
        let wanted = self.version.as_deref().unwrap_or("newest");
        let change = |name: &&str| {
            let now = version(name);
            let before =
                now.map_or_else(State::default, |now| State::default().with("version", now));
            let after = State::default().with("version", wanted);
            before.change_to(&after, Subject::Package((*name).to_owned()))
        };
        Some(names.iter().filter_map(change).collect())
    }
}

/// Whether an earlier step of a check leaves a package as this step wants it.
fn is_satisfied_ahead(step: &Package, view: &View<'_>, name: &str) -> bool {
    let Some(ahead) = view.ahead.package(name) else {
        return false;
    };
    match (step.wanted, ahead) {
        (Wanted::Present, Some(package)) => {
            step.version.is_none() || package.version == step.version
        }
        (Wanted::Latest, Some(package)) => package.version.is_none(),
        (Wanted::Absent { .. }, None) => true,
        _ => false,
    }
}

fn prediction(step: &Package, name: &str) -> Prediction {
    let state = match step.wanted {
        Wanted::Absent { .. } => None,
        Wanted::Present | Wanted::Latest => Some(PredictedPackage {
            version: step.version.clone(),
        }),
    };
    Prediction::Package(name.to_owned(), state)
}

/// A removal that nobody asked for is refused.
fn refuse_removals(names: &[&str], removed: &[&str]) -> Result<(), ModuleError> {
    if removed.is_empty() {
        return Ok(());
    }
    let reason = format!(
        "this would remove {}, which the step does not name",
        removed.join(", ")
    );
    Err(
        ModuleError::failed("change packages", names.join(", "), reason)
            .with_hint("remove them in a step of their own if that is meant"),
    )
}

/// The installed versions: of one package as `version`, of several by name.
fn versions(step: &Package, version: impl Fn(&str) -> Option<String>) -> Map<String, Value> {
    let mut map = Map::new();
    match step.names.as_slice() {
        [name] => {
            map.insert("version".to_owned(), json!(version(name)));
        }
        names => {
            let versions = names
                .iter()
                .map(|name| (name.clone(), json!(version(name))));
            map.insert("versions".to_owned(), versions.collect());
        }
    }
    map
}
