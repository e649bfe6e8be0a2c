//! `hostname`: what the machine is called, now and after the next start.

use serde_json::json;

use crate::action::{Action, Applied, ModuleError};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::{Plan, Subject};
use crate::state::State;
use crate::text_file::{TextFile, TextLook};
use crate::view::View;

/// The module `hostname`.
pub(super) static HOSTNAME: ModuleDefinition = ModuleDefinition {
    name: "hostname",
    summary: "Sets the name of the machine, now and in `/etc/hostname`.",
    parameters: &[ParameterDefinition::required(
        "name",
        ParameterType::Text,
        "The name: labels of letters, digits and `-`, with dots between them.",
    )],
    effect: Effect::Converge,
    root: RootSupport::FilesOnly,
    parse,
};

/// The longest name that the kernel takes.
const LONGEST_NAME: usize = 64;

/// The longest label of a name, by the rules of DNS.
const LONGEST_LABEL: usize = 63;

const FILE: &str = "/etc/hostname";
const FILE_MODE: u32 = 0o644;

/// The kernel's own name of the machine; writing it sets the name.
const LIVE: &str = "/proc/sys/kernel/hostname";

struct Hostname {
    name: String,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let name = parameters.line("name")?.to_owned();
    if !is_hostname(&name) {
        let message =
            "must be labels of letters, digits and `-` with dots between them, 64 letters at most";
        parameters.fault("name", message);
        return None;
    }
    Some(Box::new(Hostname { name }))
}

fn is_hostname(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LONGEST_LABEL).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    name.len() <= LONGEST_NAME && name.split('.').all(is_label)
}

impl Action for Hostname {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let TextLook::File(file) = self.look(view)? else {
            return Ok(Plan::unknown("an earlier step writes `/etc/hostname`"));
        };
        let mut plan = file.plan();
        let mut changes: Vec<_> = file.change().into_iter().collect();
        if let Some(now) = live_name(view.host)? {
            plan.before.insert("name".to_owned(), json!(now));
            let state = |name: &str| State::default().with("name", name);
            changes.extend(state(&now).change_to(
                &state(&self.name),
                Subject::Other("hostname", "now".to_owned()),
            ));
        }
        plan.outcome = Plan::of_changes(changes).outcome;
        Ok(plan)
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let view = View::of(host);
        plan.confirm(&self.plan(&view)?)?;
        let mut applied = Applied::default();
        if let TextLook::File(file) = self.look(&view)? {
            applied.is_changed = file.write(host)?;
        }
        if live_name(host)?.is_some_and(|now| now != self.name) {
            std::fs::write(LIVE, &self.name)
                .map_err(|error| ModuleError::failed("set hostname", &*self.name, error))?;
            applied.is_changed = true;
        }
        Ok(applied)
    }
}

impl Hostname {
    fn look(&self, view: &View<'_>) -> Result<TextLook, ModuleError> {
        let content = format!("{}\n", self.name);
        TextFile::look(view, FILE.into(), FILE_MODE, |_| Some(content))
    }
}

/// The name of the running machine; `None` below another root, which has no name of its own.
fn live_name(host: &Host) -> Result<Option<String>, ModuleError> {
    if host.is_rooted() {
        return Ok(None);
    }
    let name =
        std::fs::read_to_string(LIVE).map_err(|error| ModuleError::failed("read", LIVE, error))?;
    Ok(Some(name.trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_dns_would_refuse_are_refused() {
        for bad in [
            "",
            "-a",
            "a-",
            "a..b",
            "a_b",
            "a b",
            "a/b",
            &"x".repeat(64),
            &"x.".repeat(40),
        ] {
            assert!(!is_hostname(bad), "{bad}");
        }
        for good in ["web", "web-1.shop.example", &"x".repeat(63)] {
            assert!(is_hostname(good), "{good}");
        }
    }
}
