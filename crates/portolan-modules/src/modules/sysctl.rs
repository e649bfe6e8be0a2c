//! `sysctl`: settings of the kernel, now and after the next start.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use crate::action::{Action, Applied, ModuleError};
use crate::definition::{
    Effect, ModuleDefinition, ParameterDefinition, ParameterType, RootSupport,
};
use crate::host::Host;
use crate::parameters::Parameters;
use crate::plan::{Change, Plan, Subject};
use crate::state::State;
use crate::sysctl_file::{SysctlKey, plain_value, value_of, with_value};
use crate::text_file::{TextFile, TextLook};
use crate::view::{Content, View};

/// The module `sysctl`.
pub(super) static SYSCTL: ModuleDefinition = ModuleDefinition {
    name: "sysctl",
    summary: "Sets kernel settings, now and in a file that is read when the machine starts.",
    parameters: &[
        ParameterDefinition::required(
            "values",
            ParameterType::TextMap,
            "The settings, such as `net.ipv4.ip_forward`, and their values.",
        ),
        ParameterDefinition::optional(
            "file",
            ParameterType::Path,
            "The file; `/etc/sysctl.d/90-portolan.conf` by default. Other settings in it stay.",
        ),
        ParameterDefinition::optional(
            "live",
            ParameterType::Boolean,
            "Whether the running kernel is changed too, which is the default.",
        ),
    ],
    effect: Effect::Converge,
    root: RootSupport::FilesOnly,
    parse,
};

const DEFAULT_FILE: &str = "/etc/sysctl.d/90-portolan.conf";
const FILE_MODE: u32 = 0o644;

/// The most bytes of a file of settings that are read.
const MAX_BYTES: u64 = 1 << 20;

/// The directories whose files are read at start. A file of an earlier one hides files with its name in later ones;
/// all others are read in the order of their names.
const DIRECTORIES: &[&str] = &[
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
];

/// Read after all others by the tool `sysctl --system`.
const LAST_FILE: &str = "/etc/sysctl.conf";

struct Sysctl {
    settings: Vec<Setting>,
    file: Utf8PathBuf,
    is_live: bool,
}

struct Setting {
    key: SysctlKey,
    /// As the step writes it.
    name: String,
    value: String,
}

fn parse(parameters: &mut Parameters<'_>) -> Option<Box<dyn Action>> {
    let mut settings = Vec::new();
    for (name, value) in parameters.text_map("values")? {
        let value_is_line = !value.contains(['\n', '\r', '\0']) && !value.trim().is_empty();
        match SysctlKey::parse(&name) {
            Some(key) if value_is_line => settings.push(Setting {
                key,
                value: plain_value(&value),
                name,
            }),
            Some(_) => {
                parameters.fault("values", format!("the value of `{name}` must be one line"));
            }
            None => parameters.fault("values", format!("`{name}` is not a kernel setting")),
        }
    }
    let file = parameters
        .path("file")
        .unwrap_or_else(|| DEFAULT_FILE.into());
    let is_live = parameters.boolean("live", true);
    Some(Box::new(Sysctl {
        settings,
        file,
        is_live,
    }))
}

impl Action for Sysctl {
    fn plan(&self, view: &View<'_>) -> Result<Plan, ModuleError> {
        let TextLook::File(file) = self.look(view)? else {
            return Ok(Plan::unknown(format!(
                "an earlier step writes `{}`",
                self.file
            )));
        };
        let changes = file
            .change()
            .into_iter()
            .chain(self.live_changes(view.host)?);
        Ok(Plan {
            predictions: vec![file.prediction()],
            notes: self.later_files(view)?,
            ..Plan::of_changes(changes.collect())
        })
    }

    fn apply(&self, host: &Host, plan: &Plan) -> Result<Applied, ModuleError> {
        let view = View::of(host);
        let now = self.plan(&view)?;
        plan.confirm(&now)?;
        let mut applied = Applied {
            notes: now.notes,
            ..Applied::default()
        };
        if let TextLook::File(file) = self.look(&view)? {
            applied.is_changed = file.write(host)?;
        }
        for setting in self.live_settings(host) {
            if setting.live_value()? != setting.value {
                std::fs::write(setting.live_path(), &setting.value)
                    .map_err(|error| ModuleError::failed("set", &*setting.name, error))?;
                applied.is_changed = true;
            }
        }
        Ok(applied)
    }
}

impl Sysctl {
    fn look(&self, view: &View<'_>) -> Result<TextLook, ModuleError> {
        TextFile::look(view, &self.file, FILE_MODE, |old| {
            let mut text = old.unwrap_or_default().to_owned();
            for setting in &self.settings {
                text = with_value(&text, &setting.key, &setting.name, &setting.value);
            }
            Some(text)
        })
    }

    /// The settings that the running kernel gets; none below another root, which has no kernel of its own.
    fn live_settings(&self, host: &Host) -> &[Setting] {
        if self.is_live && !host.is_rooted() {
            &self.settings
        } else {
            &[]
        }
    }

    fn live_changes(&self, host: &Host) -> Result<Vec<Change>, ModuleError> {
        let mut changes = Vec::new();
        for setting in self.live_settings(host) {
            let before = State::default().with("value", setting.live_value()?);
            let after = State::default().with("value", &*setting.value);
            changes
                .extend(before.change_to(&after, Subject::Other("sysctl", setting.name.clone())));
        }
        Ok(changes)
    }

    /// Files that are read after this one and give a key another value, as notes.
    fn later_files(&self, view: &View<'_>) -> Result<Vec<String>, ModuleError> {
        let mut notes = Vec::new();
        for path in files_after(view, &self.file)? {
            let Some(Content::Known(content)) = view.read(&path, MAX_BYTES)? else {
                continue;
            };
            let text = String::from_utf8_lossy(&content);
            for setting in &self.settings {
                let other = value_of(&text, &setting.key).filter(|value| *value != setting.value);
                notes.extend(other.map(|value| {
                    format!(
                        "`{path}` is read after `{}` and sets {} = {value} at the next start",
                        self.file, setting.name
                    )
                }));
            }
        }
        Ok(notes)
    }
}

impl Setting {
    fn live_path(&self) -> Utf8PathBuf {
        Utf8Path::new("/proc/sys").join(self.key.path())
    }

    fn live_value(&self) -> Result<String, ModuleError> {
        let text = std::fs::read_to_string(self.live_path()).map_err(|error| {
            ModuleError::failed("read", &*self.name, error).with_hint(
                "the running kernel may not have it: load its module first, or use `live: false`",
            )
        })?;
        Ok(plain_value(&text))
    }
}

/// The files that are read after this one when the machine starts, in their order.
fn files_after(view: &View<'_>, file: &Utf8Path) -> Result<Vec<Utf8PathBuf>, ModuleError> {
    let mut by_name: BTreeMap<String, Utf8PathBuf> = BTreeMap::new();
    for directory in DIRECTORIES {
        for name in view.list(Utf8Path::new(directory))? {
            if Utf8Path::new(&name).extension() == Some("conf") {
                let path = Utf8Path::new(directory).join(&name);
                by_name.entry(name).or_insert(path);
            }
        }
    }
    let own = file.file_name().unwrap_or_default();
    let is_read = DIRECTORIES
        .iter()
        .any(|directory| file.parent() == Some(Utf8Path::new(directory)));
    let later = by_name
        .iter()
        .filter(|(name, path)| name.as_str() > own && is_read && *path != file);
    let mut paths: Vec<Utf8PathBuf> = later.map(|(_, path)| path.clone()).collect();
    if file != LAST_FILE && is_read {
        paths.push(LAST_FILE.into());
    }
    Ok(paths)
}
