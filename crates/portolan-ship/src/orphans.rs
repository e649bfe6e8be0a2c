//! Programs that outlived a killed run: known by files that say which process groups it started, and ended by the next run.
//!
//! A number of a process may be given to another one later, so the time of its start is written down as well. What left its
//! group is known by a variable that each program is started with, and that all inherit whom it starts.

use std::fs;

use camino::Utf8Path;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The variable that names the directory of the work that a program is started for.
pub(crate) const WORK_VARIABLE: &str = "PORTOLAN_WORK";

/// How often is looked for more of them: one that is about to end may start another.
const LOOKS: usize = 20;

/// Writes down that a process leads a group; the file goes when it has ended.
pub(crate) struct GroupRecord(camino::Utf8PathBuf);

impl GroupRecord {
    /// `None` where that cannot be written down: the program runs all the same.
    pub(crate) fn write(directory: &Utf8Path, pid: u32) -> Option<Self> {
        let path = directory.join(format!("group-{pid}"));
        fs::write(&path, start_time(pid)?.to_string()).ok()?;
        Some(Self(path))
    }
}

impl Drop for GroupRecord {
    fn drop(&mut self) {
        // It goes with the scratch directory otherwise.
        let _ = fs::remove_file(&self.0);
    }
}

/// Ends the groups that are written down in the directories of work of a dead run.
pub(crate) fn end_groups(scratch: &Utf8Path) {
    let works = || scratch.read_dir_utf8().into_iter().flatten().flatten();
    for work in works() {
        end_marked(work.path());
    }
    let works = works();
    let files = works.flat_map(|work| work.path().read_dir_utf8().into_iter().flatten().flatten());
    for file in files {
        let pid = file.file_name().strip_prefix("group-");
        let pid: Option<u32> = pid.and_then(|pid| pid.parse().ok());
        let began = fs::read_to_string(file.path()).ok();
        let began: Option<u64> = began.and_then(|began| began.trim().parse().ok());
        if let (Some(pid), Some(began)) = (pid, began)
            && start_time(pid) == Some(began)
            && let Some(group) = i32::try_from(pid).ok().and_then(Pid::from_raw)
        {
            // It may end by itself right now.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Ends every process of ours that was started for a piece of work, by whomever.
pub(crate) fn end_marked(work: &Utf8Path) {
    let mark = format!("{WORK_VARIABLE}={work}");
    for _ in 0..LOOKS {
        let marked = processes().filter(|pid| has_variable(*pid, &mark));
        let ended = marked.filter_map(|pid| {
            let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
            kill_process(pid, Signal::KILL).ok()
        });
        if ended.count() == 0 {
            return;
        }
    }
}

/// The numbers of all processes.
fn processes() -> impl Iterator<Item = u32> {
    let entries = Utf8Path::new("/proc").read_dir_utf8();
    let entries = entries.into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().parse().ok())
}

/// Whether a process was started with a variable; those of others cannot be read.
fn has_variable(pid: u32, mark: &str) -> bool {
    let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut variables = variables.split(|byte| *byte == 0);
    variables.any(|variable| variable == mark.as_bytes())
}

/// When a process began, in the kernel's own measure; `None` if there is none.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, also parentheses and spaces.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19)?.parse().ok()
}
