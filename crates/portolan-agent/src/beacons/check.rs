//! One look at what a beacon watches. These block, and are bounded in time and size.

use std::fmt::Write as _;
use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use camino::Utf8Path;
use portolan_digest::Digest;
use portolan_modules::{FileKind, Follow, Host, Program};
use portolan_trigger::BeaconReading;
use serde_json::{Map, Value, json};

use super::order::{Subject, command_time};

/// Files are compared by content up to this size, and by size and number above.
const MAX_FILE: u64 = 16 << 20;

/// The most names of a directory that is watched.
const MAX_NAMES: usize = 10_000;

/// How long a connection to a port may take.
const CONNECT_TIME: Duration = Duration::from_secs(3);

/// How long the service manager may take.
const SERVICE_TIME: Duration = Duration::from_secs(10);

/// What a look has seen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sight {
    pub(super) reading: BeaconReading,
    /// More about it.
    pub(super) data: Map<String, Value>,
}

/// Looks at a subject. What cannot be told is `unknown`, with the reason.
pub(super) fn look(subject: &Subject, host: &Host) -> Sight {
    let seen = look_at(subject, host);
    seen.unwrap_or_else(|error| unknown(&crate::agent::describe(&error)))
}

/// What cannot be told, and why.
pub(super) fn unknown(reason: &str) -> Sight {
    Sight {
        data: data(json!({"reason": shortened(reason)})),
        ..sight("unknown".to_owned(), false)
    }
}

fn look_at(subject: &Subject, host: &Host) -> io::Result<Sight> {
    match subject {
        Subject::File { path, state } => look_at_file(path.as_str().into(), state.as_deref(), host),
        Subject::Service { name, state } => look_at_service(name, state, host),
        Subject::Disk { path, free_percent } => look_at_disk(path, *free_percent, host),
        Subject::Port {
            address,
            port,
            state,
        } => look_at_port(address, *port, state),
        Subject::Command {
            run,
            timeout,
            ok_codes,
        } => {
            let mut command = host.command(Program::Arguments(run.clone()));
            command.timeout = command_time(*timeout);
            command.leaves_nothing = true;
            let ended = host.processes.run(&command, &host.stop);
            ended.map_err(io::Error::other).map(|exit| {
                let is_normal = if ok_codes.is_empty() {
                    exit.code == 0
                } else {
                    ok_codes.contains(&exit.code)
                };
                sight(format!("exit {}", exit.code), is_normal)
            })
        }
        Subject::Drift { book } => Err(io::Error::other(format!("TaskBook {book} is not here"))),
    }
}

pub(super) fn sight(condition: String, is_normal: bool) -> Sight {
    Sight {
        reading: BeaconReading {
            condition,
            is_normal,
        },
        data: Map::new(),
    }
}

pub(super) fn data(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// A text that fits into an event.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(500).collect()
}

fn look_at_file(path: &Utf8Path, wanted: Option<&str>, host: &Host) -> io::Result<Sight> {
    let condition = match host.root.status(path, Follow::Yes)? {
        None => "absent".to_owned(),
        Some(status) => {
            let content = match status.kind {
                FileKind::File if status.size <= MAX_FILE => {
                    match host.root.read(path, MAX_FILE)? {
                        Some(content) => Digest::of(&content).to_string(),
                        None => return Ok(sight("absent".to_owned(), wanted != Some("present"))),
                    }
                }
                FileKind::Directory => digest_of_names(path, host)?,
                _ => format!("size {} inode {}", status.size, status.inode),
            };
            let (mode, uid, gid) = (status.mode & 0o7777, status.uid, status.gid);
            format!("{content} {mode:04o} {uid}:{gid}")
        }
    };
    let is_normal = match wanted {
        Some("present") => condition != "absent",
        Some("absent") => condition == "absent",
        _ => true,
    };
    Ok(sight(condition, is_normal))
}

/// The names in a directory, with what each is and its size.
fn digest_of_names(path: &Utf8Path, host: &Host) -> io::Result<String> {
    let names = host.root.list(path)?;
    if names.len() > MAX_NAMES {
        let message = format!(
            "the directory has {} names, and at most {MAX_NAMES} are watched",
            names.len()
        );
        return Err(io::Error::other(message));
    }
    let mut text = String::new();
    for name in names {
        if let Some(status) = host.root.status(&path.join(&name), Follow::No)? {
            let _ = writeln!(
                text,
                "{name} {:?} {} {} {:o} {}:{}",
                status.kind, status.size, status.inode, status.mode, status.uid, status.gid
            );
        }
    }
    Ok(Digest::of(text.as_bytes()).to_string())
}

fn look_at_service(name: &str, wanted: &str, host: &Host) -> io::Result<Sight> {
    if host.is_rooted() {
        return Err(io::Error::other(
            "below another root directory there is no service manager",
        ));
    }
    let arguments = ["systemctl", "is-active", "--", name].map(str::to_owned);
    let mut command = host.command(Program::Arguments(arguments.to_vec()));
    command.timeout = SERVICE_TIME;
    command.leaves_nothing = true;
    let exit = host.processes.run(&command, &host.stop);
    let exit = exit.map_err(io::Error::other)?;
    let state = String::from_utf8_lossy(&exit.stdout).trim().to_owned();
    if state.is_empty() {
        let said = String::from_utf8_lossy(&exit.stderr).trim().to_owned();
        return Err(io::Error::other(shortened(&said)));
    }
    let is_normal = match wanted {
        "stopped" => state == "inactive",
        _ => matches!(state.as_str(), "active" | "reloading"),
    };
    Ok(sight(state, is_normal))
}

fn look_at_disk(path: &str, least: u64, host: &Host) -> io::Result<Sight> {
    let (bytes, all) = host.root.disk_space(path.into())?;
    let free = u64::try_from(u128::from(bytes) * 100 / u128::from(all.max(1))).unwrap_or(100);
    let is_normal = free >= least;
    let condition = if is_normal { "enough" } else { "low" };
    Ok(Sight {
        data: data(json!({"freePercent": free, "freeBytes": bytes})),
        ..sight(condition.to_owned(), is_normal)
    })
}

fn look_at_port(address: &str, port: u16, wanted: &str) -> io::Result<Sight> {
    let addresses: Vec<_> = (address, port).to_socket_addrs()?.take(4).collect();
    let is_open = addresses
        .iter()
        .any(|address| TcpStream::connect_timeout(address, CONNECT_TIME).is_ok());
    let condition = if is_open { "open" } else { "closed" };
    Ok(sight(condition.to_owned(), condition == wanted))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::Arc;

    use camino::Utf8PathBuf;
    use portolan_modules::Root;
    use portolan_trigger::WrittenSpan;

    use super::*;

    fn host() -> (tempfile::TempDir, Host, Utf8PathBuf) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = Utf8PathBuf::try_from(directory.path().to_owned()).expect("UTF-8");
        let root = Root::other(&path).expect("a root");
        (directory, Host::local(Arc::new(root)), path)
    }

    fn condition(subject: &Subject, host: &Host) -> (String, bool) {
        let reading = look(subject, host).reading;
        (reading.condition, reading.is_normal)
    }

    #[test]
    fn a_file_is_another_one_when_its_content_or_its_mode_changes() {
        let (_directory, host, root) = host();
        let file = |state: Option<&str>| Subject::File {
            path: "/a".to_owned(),
            state: state.map(str::to_owned),
        };
        let absent = ("absent".to_owned(), true);
        assert_eq!(condition(&file(None), &host), absent);
        assert_eq!(condition(&file(Some("absent")), &host), absent);
        assert!(!condition(&file(Some("present")), &host).1);
        std::fs::write(root.join("a"), "one").expect("written");
        let first = condition(&file(Some("present")), &host);
        assert!(
            first.1 && first.0.starts_with("sha256:") && first.0.len() < 128,
            "{}",
            first.0
        );
        assert!(!condition(&file(Some("absent")), &host).1);
        std::fs::write(root.join("a"), "two").expect("written");
        let second = condition(&file(None), &host);
        assert_ne!(first.0, second.0);
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(root.join("a"), mode).expect("changed");
        let third = condition(&file(None), &host);
        assert_ne!(second.0, third.0);
        let directory = Subject::File {
            path: "/".to_owned(),
            state: None,
        };
        let before = condition(&directory, &host);
        std::fs::write(root.join("b"), "").expect("written");
        assert_ne!(condition(&directory, &host), before);
    }

    #[test]
    fn ports_commands_and_disks_are_told_apart_from_what_they_should_be() {
        let (_directory, host, root) = host();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = Subject::Port {
            address: "127.0.0.1".to_owned(),
            port: listener.local_addr().expect("bound").port(),
            state: "open".to_owned(),
        };
        assert_eq!(condition(&port, &host), ("open".to_owned(), true));
        drop(listener);
        assert_eq!(condition(&port, &host), ("closed".to_owned(), false));
        let command = |run: &[&str], ok_codes: &[i32]| Subject::Command {
            run: run.iter().map(|one| (*one).to_owned()).collect(),
            timeout: WrittenSpan::seconds(1),
            ok_codes: ok_codes.to_vec(),
        };
        let ends = ["/bin/sh", "-c", "exit 3"];
        assert_eq!(
            condition(&command(&ends, &[]), &host),
            ("exit 3".to_owned(), false)
        );
        assert_eq!(
            condition(&command(&ends, &[0, 3]), &host),
            ("exit 3".to_owned(), true)
        );
        let unknown = ("unknown".to_owned(), false);
        assert_eq!(condition(&command(&["/bin/nothing"], &[]), &host), unknown);
        assert_eq!(
            condition(&command(&["/bin/sleep", "60"], &[]), &host),
            unknown
        );
        let disk = |free_percent| Subject::Disk {
            path: "/".to_owned(),
            free_percent,
        };
        assert_eq!(condition(&disk(0), &host), ("enough".to_owned(), true));
        assert_eq!(condition(&disk(101), &host), ("low".to_owned(), false));
        // A link out of the root leads nowhere.
        std::os::unix::fs::symlink("/dev/shm", root.join("out")).expect("a link");
        let out = Subject::Disk {
            path: "/out".to_owned(),
            free_percent: 0,
        };
        assert_eq!(condition(&out, &host), unknown);
        let service = Subject::Service {
            name: "web".to_owned(),
            state: "running".to_owned(),
        };
        assert_eq!(condition(&service, &host), unknown);
    }

    #[test]
    fn a_command_leaves_no_process() {
        let (_directory, host, root) = host();
        let text = "sleep 300 & echo $! > $PORTOLAN_ROOT/process";
        let command = Subject::Command {
            run: ["/bin/sh", "-c", text].map(str::to_owned).to_vec(),
            timeout: WrittenSpan::seconds(10),
            ok_codes: Vec::new(),
        };
        assert_eq!(condition(&command, &host), ("exit 0".to_owned(), true));
        let process = std::fs::read_to_string(root.join("process")).expect("a number");
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", process.trim()));
        // One that ended may wait for the machine's first process to notice it.
        let is_gone = || state().map_or(true, |state| state.contains(") Z "));
        let began = std::time::Instant::now();
        while !is_gone() {
            assert!(began.elapsed() < Duration::from_secs(10), "it runs on");
            std::thread::yield_now();
        }
    }
}
