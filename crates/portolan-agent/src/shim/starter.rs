//! The last step before a command: the process that takes on its group, root directory and user, and then becomes it.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use camino::Utf8PathBuf;

use super::account::RunAs;
use super::control_group::enter;

/// How a command is started. Its environment is that of the process that becomes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StartOrder {
    /// The file through which it enters its control group.
    pub(super) control_group: Option<Utf8PathBuf>,
    /// The directory that becomes its `/`.
    pub(super) chroot: Option<Utf8PathBuf>,
    /// Where it starts.
    pub(super) directory: Utf8PathBuf,
    /// Who it runs as.
    pub(super) account: Option<RunAs>,
    /// The program and its arguments.
    pub(super) program: Vec<String>,
}

impl StartOrder {
    /// The arguments that [`from_arguments`](Self::from_arguments) reads: four values, then the program.
    pub(super) fn to_arguments(&self) -> Vec<String> {
        let path = |path: &Option<Utf8PathBuf>| path.as_ref().map(ToString::to_string);
        let options = [
            Some("start".to_owned()),
            path(&self.control_group),
            path(&self.chroot),
            Some(self.directory.to_string()),
            self.account.as_ref().map(to_json),
        ];
        let options = options.into_iter().map(Option::unwrap_or_default);
        options.chain(self.program.iter().cloned()).collect()
    }

    /// Reads what follows `start`; `None` if it is incomplete.
    pub(super) fn from_arguments(arguments: &[String]) -> Option<Self> {
        let [control_group, chroot, directory, account, program @ ..] = arguments else {
            return None;
        };
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Some(Self {
            control_group: text(control_group).map(Utf8PathBuf::from),
            chroot: text(chroot).map(Utf8PathBuf::from),
            directory: directory.into(),
            account: text(account)
                .map(|text| serde_json::from_str(&text))
                .transpose()
                .ok()?,
            program: program.to_vec(),
        })
    }
}

fn to_json(account: &RunAs) -> String {
    serde_json::to_string(account).unwrap_or_default()
}

/// Becomes the command, with the environment of this process. Returns only when that fails.
pub(super) fn start_program(order: &StartOrder) -> io::Error {
    match prepare(order) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    }
}

fn prepare(order: &StartOrder) -> io::Result<Command> {
    let [program, arguments @ ..] = order.program.as_slice() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "no program is named",
        ));
    };
    if let Some(entrance) = &order.control_group {
        enter(entrance)?;
    }
    if let Some(root) = &order.chroot {
        rustix::process::chroot(root.as_str())?;
        rustix::process::chdir("/")?;
    }
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(account) = &order.account {
        let user = &account.name;
        for (name, value) in [("HOME", &account.home), ("USER", user), ("LOGNAME", user)] {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        account.take_on()?;
    }
    // As the user: a directory that it may not enter is an error.
    rustix::process::chdir(order.directory.as_str()).map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(
            error.kind(),
            format!("cannot start in `{}`: {error}", order.directory),
        )
    })?;
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written() {
        let order = StartOrder {
            chroot: Some("/srv/root".into()),
            directory: "/".into(),
            account: Some(RunAs {
                name: "web".to_owned(),
                uid: 990,
                gid: 991,
                groups: vec![991, 4],
                home: "/srv/web".to_owned(),
            }),
            program: ["printf", "--", ""].map(str::to_owned).to_vec(),
            ..StartOrder::default()
        };
        let arguments = order.to_arguments();
        assert_eq!(StartOrder::from_arguments(&arguments[1..]), Some(order));
        assert_eq!(StartOrder::from_arguments(&arguments[..3]), None);
    }
}
