//! `user`: a local user exists as described, with its groups, password and SSH keys, or does not exist.
//!
//! `useradd`, `usermod` and `userdel` do the work. A password hash is never an argument of a program: it is written
//! into `/etc/shadow` under its lock. A home directory is made for a new user that is no system user; afterwards it
//! is neither moved nor given to somebody else.

mod account;
mod keys;

use camino::Utf8PathBuf;

use crate::account_tool::{fault_of_name, id};
use crate::action::Action;
use crate::authorized_keys::KeyLine;
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::parameters::Parameters;
use crate::shadow::fault_of_hash;

/// The module `user`.
pub(super) static USER: ModuleDefinition = ModuleDefinition {
    name: "user",
    summary: "Makes, changes or removes a local user with its groups, password and SSH keys.",
    parameters: &[
        ParameterDefinition::required("name", ParameterType::Text, "The user."),
        ParameterDefinition::optional(
            "uid",
            ParameterType::Integer,
            "Its number; a new user gets the next free one of the range in `/etc/login.defs` by default.",
        ),
        ParameterDefinition::optional(
            "system",
            ParameterType::Boolean,
            "Whether a new user is a system user: with a number of their range, without a home directory.",
        ),
        ParameterDefinition::optional(
            "comment",
            ParameterType::Text,
            "What it is called, such as a full name.",
        ),
        ParameterDefinition::optional(
            "group",
            ParameterType::Text,
            "Its primary group; a new user gets a group with its own name by default.",
        ),
        ParameterDefinition::optional(
            "addGroups",
            ParameterType::TextList,
            "Groups that it is in; it stays in others.",
        ),
        ParameterDefinition::optional(
            "groups",
            ParameterType::TextList,
            "All groups that it is in, beside its primary group; it leaves others.",
        ),
        ParameterDefinition::optional(
            "home",
            ParameterType::Path,
            "Its home directory; the content of another one is not moved.",
        ),
        ParameterDefinition::optional("shell", ParameterType::Path, "Its login shell."),
        ParameterDefinition::optional(
            "passwordHash",
            ParameterType::Text,
            "The hash of its password, as `mkpasswd` prints it; it begins with `$`.",
        ),
        ParameterDefinition::optional(
            "setPassword",
            ParameterType::Word(&["onCreate", "always"]),
            "Whether `passwordHash` is for a new user only, which is the default, or replaces another one.",
        ),
        ParameterDefinition::optional(
            "authorizedKeys",
            ParameterType::TextList,
            "Lines of `~/.ssh/authorized_keys`, with options if there are any.",
        ),
        ParameterDefinition::optional(
            "exclusiveKeys",
            ParameterType::Boolean,
            "Whether other keys are removed; they stay by default.",
        ),
        ParameterDefinition::optional(
            "locked",
            ParameterType::Boolean,
            "Whether the password is locked; it stays as it is by default.",
        ),
        ParameterDefinition::optional(
            "state",
            ParameterType::Word(&["present", "absent"]),
            "`present`, which is the default, or `absent`.",
        ),
        ParameterDefinition::optional(
            "removeHome",
            ParameterType::Boolean,
            "Whether the home directory goes with an absent user; it stays by default.",
        ),
    ],
    effect: Effect::Converge,
    root: RootSupport::Full,
    parse,
};

struct User {
    name: String,
    uid: Option<u32>,
    is_system: bool,
    comment: Option<String>,
    group: Option<String>,
    groups: Groups,
    home: Option<Utf8PathBuf>,
    shell: Option<Utf8PathBuf>,
    password_hash: Option<String>,
    is_password_for_all: bool,
    keys: Option<Vec<KeyLine>>,
    has_only_these_keys: bool,
    is_locked: Option<bool>,
    is_wanted: bool,
    removes_home: bool,
}

/// Groups beside the primary one.
enum Groups {
    AsTheyAre,
    AtLeast(Vec<String>),
    Exactly(Vec<String>),
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let name = parameters.line("name")?.to_owned();
    if let Some(fault) = fault_of_name(&name) {
        parameters.fault("name", fault);
    }
    let user = User {
        name,
        uid: id(parameters, "uid"),
        is_system: parameters.boolean("system", false),
        comment: field(parameters, "comment"),
        group: parameters.line("group").map(str::to_owned),
        groups: groups(parameters),
        home: parameters
            .path("home")
            .filter(|path| is_field(path.as_str())),
        shell: parameters
            .path("shell")
            .filter(|path| is_field(path.as_str())),
        password_hash: password_hash(parameters),
        is_password_for_all: parameters.word("setPassword") == Some("always"),
        keys: keys(parameters),
        has_only_these_keys: parameters.boolean("exclusiveKeys", false),
        is_locked: parameters.optional_boolean("locked"),
        is_wanted: parameters.word("state") != Some("absent"),
        removes_home: parameters.boolean("removeHome", false),
    };
    for path in ["home", "shell"] {
        field(parameters, path);
    }
    if user.removes_home && user.is_wanted {
        parameters.fault("removeHome", "is for `state: absent`");
    }
    if !user.has_only_these_keys || user.keys.is_some() {
        return Some(Box::new(user));
    }
    parameters.fault("exclusiveKeys", "needs `authorizedKeys`");
    None
}

/// A text that can be a field of `/etc/passwd`.
fn field(parameters: &mut Parameters<'_>, name: &str) -> Option<String> {
    let text = parameters.text(name)?;
    if !is_field(text) {
        parameters.fault(name, "must be one line without `:`");
        return None;
    }
    Some(text.to_owned())
}

fn is_field(text: &str) -> bool {
    !text.contains([':', '\n', '\r', '\0'])
}

fn groups(parameters: &mut Parameters<'_>) -> Groups {
    parameters.at_most_one(&["addGroups", "groups"]);
    let mut read = |name: &str| {
        let mut names = parameters.text_list(name)?;
        for group in &names {
            if fault_of_name(group).is_some() {
                parameters.fault(name, format!("`{group}` is not the name of a group"));
            }
        }
        names.sort_unstable();
        names.dedup();
        Some(names)
    };
    let (added, exact) = (read("addGroups"), read("groups"));
    match (added, exact) {
        (_, Some(names)) => Groups::Exactly(names),
        (Some(names), None) => Groups::AtLeast(names),
        (None, None) => Groups::AsTheyAre,
    }
}

fn password_hash(parameters: &mut Parameters<'_>) -> Option<String> {
    let hash = parameters.text("passwordHash")?;
    if let Some(fault) = fault_of_hash(hash) {
        parameters.fault_with(
            "passwordHash",
            fault,
            Some("`mkpasswd` and `openssl passwd -6` make one".to_owned()),
        );
        return None;
    }
    Some(hash.to_owned())
}

fn keys(parameters: &mut Parameters<'_>) -> Option<Vec<KeyLine>> {
    let mut keys = Vec::new();
    for (index, line) in parameters.text_list("authorizedKeys")?.iter().enumerate() {
        match KeyLine::parse(line) {
            Some(key) => keys.push(key),
            None => parameters.fault(
                "authorizedKeys",
                format!("item {} is not one line with an SSH key", index + 1),
            ),
        }
    }
    Some(keys)
}
