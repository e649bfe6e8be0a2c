//! `group`: a local group exists with its number, or does not exist.

use serde_json::json;

use crate::account_tool::{account_tool, fault_of_name, id, is_from_directory};
use crate::accounts::Accounts;
use crate::action::{Action, Applied, ModuleError};
use crate::ahead::Prediction;
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::{Plan, Subject};
use crate::state::State;
use crate::view::View;

/// The module `group`.
pub(super) static GROUP: ModuleDefinition = ModuleDefinition {
    name: "group",
    summary: "Makes, changes or removes a local group.",
    parameters: &[
        ParameterDefinition::required("name", ParameterType::Text, "The group."),
        ParameterDefinition::optional(
            "gid",
            ParameterType::Integer,
            "Its number; a new group gets the next free one by default.",
        ),
        ParameterDefinition::optional(
            "system",
            ParameterType::Boolean,
            "Whether a new group gets a number of the range for system groups.",
        ),
        ParameterDefinition::optional(
            "state",
            ParameterType::Word(&["present", "absent"]),
            "`present`, which is the default, or `absent`.",
        ),
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

struct Group {
    name: String,
    gid: Option<u32>,
    is_system: bool,
    is_wanted: bool,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let name = parameters.text("name")?.to_owned();
    if let Some(fault) = fault_of_name(&name) {
        parameters.fault("name", fault);
    }
    Some(Box::new(Group {
        name,
        gid: id(parameters, "gid"),
        is_system: parameters.boolean("system", false),
        is_wanted: parameters.word("state") != Some("absent"),
    }))
}

impl Action for Group {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let files = Accounts::read(&view.host.root)?;
        let now = self.state_now(&files);
        let is_there = view.ahead.group(&self.name).unwrap_or(!now.is_absent());
        if view.ahead.group(&self.name).is_some() && self.gid.is_none() {
            // An earlier step decides whether it is there; nothing else is asked here.
            let (before, after) = (present(is_there), present(self.is_wanted));
            return Ok(self.plan_of(&before, &after));
        }
        if now.is_absent() && is_from_directory(view.host, "group", &self.name)? {
            let reason = "it comes from a directory service and not from `/etc/group`";
            return Err(ModuleError::failed("change group", &*self.name, reason));
        }
        if self.is_wanted {
            self.refuse_taken_number(&files)?;
        } else if let Some(user) = self.primary_of(&files) {
            let reason = format!("it is the primary group of the user `{user}`");
            return Err(ModuleError::failed("remove group", &*self.name, reason)
                .with_hint("remove the user first, or give it another group"));
        }
        let mut plan = self.plan_of(&now, &self.state_wanted(&now));
        if let Some(group) = files.group(&self.name) {
            plan.before.insert("gid".to_owned(), json!(group.gid));
        }
        Ok(plan)
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let now = self.plan(&View::of(host))?;
        plan.confirm(&now)?;
        let mut applied = Applied {
            is_changed: !now.changes().is_empty(),
            ..Applied::default()
        };
        if applied.is_changed {
            self.change(host)?;
        }
        if let Some(group) = Accounts::read(&host.root)?.group(&self.name) {
            applied.result.insert("gid".to_owned(), json!(group.gid));
        }
        Ok(applied)
    }
}

/// The state of a group of which nothing but its presence is known.
fn present(is_there: bool) -> State {
    if is_there {
        State::default().with("group", "present")
    } else {
        State::default()
    }
}

impl Group {
    fn state_now(&self, files: &Accounts) -> State {
        match files.group(&self.name) {
            Some(group) => State::default().with("gid", group.gid.to_string()),
            None => State::default(),
        }
    }

    fn state_wanted(&self, now: &State) -> State {
        match (self.is_wanted, self.gid) {
            (false, _) => State::default(),
            (true, Some(gid)) => State::default().with("gid", gid.to_string()),
            (true, None) if !now.is_absent() => now.clone(),
            (true, None) => State::default().with("gid", "next free"),
        }
    }

    fn plan_of(&self, before: &State, after: &State) -> Plan {
        let change = before.change_to(after, Subject::Group(self.name.clone()));
        Plan {
            predictions: vec![Prediction::Group(self.name.clone(), self.is_wanted)],
            ..Plan::of_changes(change.into_iter().collect())
        }
    }

    fn refuse_taken_number(&self, files: &Accounts) -> Result<(), ModuleError> {
        let other = files
            .groups
            .iter()
            .find(|group| Some(group.gid) == self.gid && group.name != self.name);
        match other {
            Some(group) => {
                let reason = format!("the group `{}` has the number {}", group.name, group.gid);
                Err(ModuleError::failed("make group", &*self.name, reason))
            }
            None => Ok(()),
        }
    }

    fn primary_of<'a>(&self, files: &'a Accounts) -> Option<&'a str> {
        let gid = files.group(&self.name)?.gid;
        files
            .users
            .iter()
            .find(|user| user.gid == gid)
            .map(|user| user.name.as_str())
    }

    fn change(&self, host: &Host) -> Result<(), ModuleError> {
        let exists = Accounts::read(&host.root)?.group(&self.name).is_some();
        let gid = self.gid.map(|gid| gid.to_string());
        let (program, act) = match (self.is_wanted, exists) {
            (true, false) => ("groupadd", "make group"),
            (true, true) => ("groupmod", "change group"),
            (false, _) => ("groupdel", "remove group"),
        };
        let mut tool = account_tool(host, program)?;
        if self.is_wanted {
            tool = tool.args(gid.into_iter().flat_map(|gid| ["-g".to_owned(), gid]));
        }
        if self.is_wanted && !exists && self.is_system {
            tool = tool.arg("-r");
        }
        tool.arg(&*self.name).run_for(host, act, &self.name)?;
        Ok(())
    }
}
