//! Programs run to their end, with everything they start.
//!
//! A program runs in a process group of its own. When its time is up or its work is called off, the group is asked to end
//! and, after a while, made to, with everything that left the group. What it prints is read by threads as it comes, in lines of bounded length; the last lines
//! are kept for whoever has to tell why it failed.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use portolan_engine::CancellationToken;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::orphans::{GroupRecord, WORK_VARIABLE, end_marked};

/// How long a program may go on after it was asked to end.
const GRACE: Duration = Duration::from_secs(5);

/// How often is looked whether the work was called off.
const LOOK: Duration = Duration::from_millis(20);

/// The longest line that is kept whole.
const MAX_LINE_BYTES: usize = 64 << 10;

/// How much more of a line is looked at for secrets: one that begins before the end of what is kept must be seen whole.
const LOOK_AHEAD: usize = 64 << 10;

/// How many lines are taken together when a program prints fast.
const BATCH_LINES: usize = 1024;

/// How many such batches may wait to be taken.
const WAITING_BATCHES: usize = 8;

/// How long is waited for more lines after a program has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How many of the last lines are kept.
const LAST_LINES: usize = 20;

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Where it runs.
    pub directory: Utf8PathBuf,
    /// All of its environment.
    pub env: BTreeMap<String, String>,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// Why it ended.
    pub how: End,
    /// The last lines that it printed.
    pub last_lines: Vec<String>,
}

/// Why a program ended.
#[derive(Debug)]
pub enum End {
    /// By itself.
    Exit(ExitStatus),
    /// Its time was up.
    TimedOut,
    /// Its work was called off.
    Cancelled,
}

/// Runs a program; a file in `scratch` names its group while it runs. `take` gets the lines that it prints after `hide` took the secrets out of them.
pub(crate) fn run(
    program: &Program,
    scratch: &Utf8Path,
    limit: Duration,
    token: &CancellationToken,
    hide: &dyn Fn(String) -> String,
    take: &mut dyn FnMut(Vec<String>),
) -> io::Result<Ended> {
    let [name, arguments @ ..] = program.argv.as_slice() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "no program is named",
        ));
    };
    let mut child = Command::new(name)
        .args(arguments)
        .current_dir(&program.directory)
        .env_clear()
        .envs(&program.env)
        .env(WORK_VARIABLE, scratch)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let group = Group::of(&child);
    let _record = GroupRecord::write(scratch, child.id());
    // A program that prints faster than its lines are taken waits.
    let (give, lines) = mpsc::sync_channel(WAITING_BATCHES);
    if let Some(pipe) = child.stdout.take() {
        read_lines(pipe, give.clone());
    }
    if let Some(pipe) = child.stderr.take() {
        read_lines(pipe, give);
    }
    let mut last = VecDeque::new();
    let mut keep = |batch: Vec<String>| {
        let batch: Vec<String> = batch.into_iter().map(|text| shorten(hide(text))).collect();
        last.extend(batch.iter().rev().take(LAST_LINES).rev().cloned());
        let surplus = last.len().saturating_sub(LAST_LINES);
        last.drain(..surplus);
        take(batch);
    };

    let deadline = Instant::now().checked_add(limit);
    let mut stopping: Option<(End, Instant)> = None;
    let how = loop {
        match lines.recv_timeout(LOOK) {
            Ok(text) => keep(text),
            // Both pipes are closed: whatever still runs in the group says nothing more.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(Duration::from_millis(1)),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(status) = child.try_wait()? {
            break stopping.take().map_or(End::Exit(status), |(why, _)| why);
        }
        match &stopping {
            None if token.is_cancelled() => {
                group.signal(Signal::TERM);
                stopping = Some((End::Cancelled, Instant::now()));
            }
            None if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                group.signal(Signal::TERM);
                stopping = Some((End::TimedOut, Instant::now()));
            }
            Some((_, since)) if since.elapsed() >= GRACE => group.signal(Signal::KILL),
            _ => {}
        }
    };
    // Children that it left behind end with it, and then the pipes close. One that left the group may hold them open: it is
    // not waited for.
    group.signal(Signal::KILL);
    if !matches!(how, End::Exit(_)) {
        // Nobody wants what it started, also outside of its group. A server that a good build leaves for the next one stays.
        end_marked(scratch);
    }
    let ended = Instant::now();
    while let Ok(text) = lines.recv_timeout(LAST_WORDS) {
        keep(text);
        if ended.elapsed() >= GRACE {
            break;
        }
    }
    Ok(Ended {
        how,
        last_lines: last.into(),
    })
}

/// The process group of a child.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(i32::try_from(child.id()).ok().and_then(Pid::from_raw))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // It may have ended already.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Reads lines until the pipe closes, as many together as have come; bytes that are no UTF-8 are replaced. Of a line that is
/// too long its beginning is read, and the rest left out.
fn read_lines(pipe: impl Read + Send + 'static, give: SyncSender<Vec<String>>) {
    thread::spawn(move || {
        let mut pipe = BufReader::with_capacity(MAX_LINE_BYTES, pipe);
        let mut batch = Vec::new();
        while let Ok(Some(line)) = read_line(&mut pipe) {
            batch.push(line);
            let is_more_at_hand = pipe.buffer().contains(&b'\n');
            if (!is_more_at_hand || batch.len() >= BATCH_LINES)
                && give.send(std::mem::take(&mut batch)).is_err()
            {
                return;
            }
        }
    });
}

/// Reads one line; `None` at the end.
fn read_line(pipe: &mut impl BufRead) -> io::Result<Option<String>> {
    let most = MAX_LINE_BYTES + LOOK_AHEAD;
    let mut line = Vec::new();
    if pipe
        .by_ref()
        .take(most as u64)
        .read_until(b'\n', &mut line)?
        == 0
    {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') && line.len() == most {
        skip_line(pipe)?;
    }
    let text = String::from_utf8_lossy(&line);
    Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
}

/// Reads to the end of a line without keeping it.
fn skip_line(pipe: &mut impl BufRead) -> io::Result<()> {
    loop {
        let piece = pipe.fill_buf()?;
        if piece.is_empty() {
            return Ok(());
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let length = piece.len();
        pipe.consume(end.map_or(length, |end| end + 1));
        if end.is_some() {
            return Ok(());
        }
    }
}

/// A line as it is kept, after the secrets were taken out of it.
fn shorten(mut line: String) -> String {
    if line.len() > MAX_LINE_BYTES {
        line.truncate(line.floor_char_boundary(MAX_LINE_BYTES));
        line.push_str(" … (the rest of the line is left out)");
    }
    line
}
