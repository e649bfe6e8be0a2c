//! A unit of systemd, as `systemctl` shows it.

/// The state of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SystemdUnit {
    /// Whether it runs.
    pub active: ActiveState,
    /// The word for that, as `systemctl` prints it.
    pub active_text: String,
    /// Whether it starts with the machine.
    pub enabled: EnabledState,
    /// The word for that, as `systemctl` prints it.
    pub enabled_text: String,
    /// How its last run ended.
    pub result: String,
    /// Whether its file has changed since systemd has read it.
    pub needs_reload: bool,
    /// Sockets, timers and paths that start it.
    pub triggered_by: Vec<String>,
    /// How systemd knows that it runs: `simple`, `notify`, `oneshot` and others.
    pub kind: String,
    is_missing: bool,
}

/// Whether a unit runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ActiveState {
    /// It runs, or has done what it does.
    Active,
    /// It starts, stops or reloads.
    Changing,
    /// It does not run.
    Inactive,
    /// It has failed.
    Failed,
    /// Nobody knows.
    #[default]
    Unknown,
}

/// Whether a unit starts with the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EnabledState {
    /// It does.
    Enabled,
    /// It does not.
    Disabled,
    /// It can be neither enabled nor disabled: other units need it, or it was generated.
    Fixed,
    /// It cannot be started at all.
    Masked,
    /// There is no such unit.
    #[default]
    Missing,
}

impl SystemdUnit {
    /// A unit below another root, by what `systemctl is-enabled` prints.
    pub fn without_manager(text: &str) -> Self {
        let text = text.trim();
        let enabled = enabled_state(text);
        Self {
            enabled,
            enabled_text: text.to_owned(),
            is_missing: enabled == EnabledState::Missing,
            active_text: "unknown".to_owned(),
            ..Self::default()
        }
    }

    /// Whether there is no such unit.
    pub fn is_missing(&self) -> bool {
        self.is_missing
    }

    /// Whether it cannot be started at all.
    pub fn is_masked(&self) -> bool {
        self.enabled == EnabledState::Masked
    }

    /// Whether it has to be enabled or disabled to be as wanted. Units that cannot be are as wanted.
    pub fn differs(&self, wanted: bool) -> bool {
        match self.enabled {
            EnabledState::Enabled => !wanted,
            EnabledState::Disabled | EnabledState::Missing | EnabledState::Masked => wanted,
            EnabledState::Fixed => false,
        }
    }
}

/// Reads what `systemctl show` prints about a unit.
pub fn parse_unit(text: &str) -> SystemdUnit {
    let mut unit = SystemdUnit::default();
    let mut load_state = "";
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        match name {
            "LoadState" => load_state = value,
            "ActiveState" => {
                unit.active = active_state(value);
                value.clone_into(&mut unit.active_text);
            }
            "Type" => value.clone_into(&mut unit.kind),
            "UnitFileState" => {
                unit.enabled = enabled_state(value);
                value.clone_into(&mut unit.enabled_text);
            }
            "NeedDaemonReload" => unit.needs_reload = value == "yes",
            "TriggeredBy" => {
                unit.triggered_by = value.split_ascii_whitespace().map(str::to_owned).collect();
            }
            "Result" => value.clone_into(&mut unit.result),
            _ => {}
        }
    }
    unit.is_missing = load_state == "not-found";
    if load_state == "masked" {
        unit.enabled = EnabledState::Masked;
    }
    unit
}

fn active_state(text: &str) -> ActiveState {
    match text {
        "active" | "reloading" => ActiveState::Active,
        "activating" | "deactivating" | "maintenance" => ActiveState::Changing,
        "inactive" => ActiveState::Inactive,
        "failed" => ActiveState::Failed,
        _ => ActiveState::Unknown,
    }
}

fn enabled_state(text: &str) -> EnabledState {
    match text {
        "enabled" | "enabled-runtime" => EnabledState::Enabled,
        "disabled" | "linked" | "linked-runtime" => EnabledState::Disabled,
        "masked" | "masked-runtime" => EnabledState::Masked,
        "static" | "indirect" | "generated" | "alias" | "transient" => EnabledState::Fixed,
        _ => EnabledState::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_read_from_what_systemctl_shows() {
        let text = "LoadState=loaded\nActiveState=active\nType=simple\nUnitFileState=static\n\
                    NeedDaemonReload=yes\nTriggeredBy=web.socket web.timer\nResult=success\n";
        let unit = parse_unit(text);
        assert_eq!(
            (unit.active, unit.enabled),
            (ActiveState::Active, EnabledState::Fixed)
        );
        assert_eq!(unit.triggered_by, ["web.socket", "web.timer"]);
        assert!(unit.needs_reload && !unit.is_missing() && !unit.differs(true));
        assert!(parse_unit("LoadState=not-found\n").is_missing());
        assert!(parse_unit("LoadState=masked\nUnitFileState=masked\n").is_masked());
    }

    #[test]
    fn below_a_root_only_files_tell() {
        assert!(SystemdUnit::without_manager("disabled\n").differs(true));
        assert!(!SystemdUnit::without_manager("alias\n").differs(true));
        assert!(SystemdUnit::without_manager("").is_missing());
    }
}
