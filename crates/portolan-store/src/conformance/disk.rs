//! A simulated disk with power cuts: what was written since the last sync may be lost, torn or in another order
//! afterwards.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use redb::StorageBackend;

/// What a disk writes at once; larger writes may end up in part.
const SECTOR: usize = 512;

/// What goes wrong, and at which call of the backend (reads are not counted).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// Nothing.
    None,
    /// The power is cut: this call and all after it fail.
    PowerCut(u64),
    /// A sync fails, and what it should have synced may be lost; later ones say that all is well, as Linux does.
    FailedSync(u64),
    /// No write from here on finds room.
    Full(u64),
    /// The power is cut at this call, and no sync before it did anything. No store can survive that.
    Lying(u64),
}

/// What a power cut does to what was not synced.
#[derive(Debug, Clone, Copy)]
pub struct Crash {
    /// The seed of all chance in it.
    pub seed: u64,
}

/// The disk. Clones are the same disk.
#[derive(Debug, Clone)]
pub struct ForgetfulDisk(Arc<Mutex<Disk>>);

#[derive(Debug)]
struct Disk {
    /// What a reader sees.
    seen: Vec<u8>,
    /// What is safe.
    durable: Vec<u8>,
    /// What was done since the last sync.
    unsynced: Vec<Change>,
    calls: u64,
    fault: DiskFault,
    is_down: bool,
    is_full: bool,
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl ForgetfulDisk {
    /// An empty disk.
    pub fn new(fault: DiskFault) -> Self {
        Self::holding(Vec::new(), fault)
    }

    /// A disk with something on it.
    pub fn holding(content: Vec<u8>, fault: DiskFault) -> Self {
        Self(Arc::new(Mutex::new(Disk {
            seen: content.clone(),
            durable: content,
            unsynced: Vec::new(),
            calls: 0,
            fault,
            is_down: false,
            is_full: false,
        })))
    }

    /// What is on it after a power cut now.
    pub fn crash(&self, crash: Crash) -> Vec<u8> {
        let disk = self.0.lock();
        let mut random = StdRng::seed_from_u64(crash.seed);
        let mut content = disk.durable.clone();
        let mut changes = disk.unsynced.clone();
        // Lengths keep their order; a file system logs them. Data does not.
        if random.random_bool(0.5) {
            changes.shuffle(&mut random);
        }
        for change in &changes {
            keep(&mut content, change, &mut random);
        }
        content
    }

    /// What a reader would see, without a crash.
    pub fn content(&self) -> Vec<u8> {
        self.0.lock().seen.clone()
    }

    /// Calls so far that could have failed.
    pub fn calls(&self) -> u64 {
        self.0.lock().calls
    }
}

/// Applies a change to the disk after a crash: not, in part, or whole.
fn keep(content: &mut Vec<u8>, change: &Change, random: &mut StdRng) {
    match change {
        Change::Length(length) if *length >= content.len() || random.random_bool(0.5) => {
            content.resize(*length, 0);
        }
        Change::Length(_) => {}
        Change::Write(offset, data) => {
            if content.len() < offset + data.len() {
                content.resize(offset + data.len(), 0);
            }
            let fate = random.random_range(0..3);
            for (number, sector) in data.chunks(SECTOR).enumerate() {
                let is_kept = match fate {
                    0 => false,
                    1 => true,
                    _ => random.random_bool(0.5),
                };
                if is_kept {
                    let at = offset + number * SECTOR;
                    content[at..at + sector.len()].copy_from_slice(sector);
                }
            }
        }
    }
}

impl Disk {
    /// Counts a call, and fails it if its time has come.
    fn call(&mut self, is_sync: bool) -> io::Result<()> {
        self.calls += 1;
        match self.fault {
            DiskFault::PowerCut(at) | DiskFault::Lying(at) if self.calls >= at => {
                self.is_down = true;
            }
            DiskFault::Full(at) if self.calls >= at => self.is_full = true,
            DiskFault::FailedSync(at) if self.calls >= at && is_sync => {
                self.fault = DiskFault::None;
                return Err(io::Error::other("input/output error"));
            }
            _ => {}
        }
        match () {
            () if self.is_down => Err(io::Error::other("the power is cut")),
            () if self.is_full && !is_sync => Err(io::ErrorKind::StorageFull.into()),
            () => Ok(()),
        }
    }
}

impl StorageBackend for ForgetfulDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let disk = self.0.lock();
        if disk.is_down {
            return Err(io::Error::other("the power is cut"));
        }
        let offset = offset as usize;
        let found = disk.seen.get(offset..offset + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut disk = self.0.lock();
        disk.call(false)?;
        disk.seen.resize(len as usize, 0);
        disk.unsynced.push(Change::Length(len as usize));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut disk = self.0.lock();
        disk.call(true)?;
        if matches!(disk.fault, DiskFault::Lying(_)) {
            return Ok(());
        }
        let disk = &mut *disk;
        for change in disk.unsynced.drain(..) {
            match change {
                Change::Length(length) => disk.durable.resize(length, 0),
                Change::Write(offset, data) => {
                    if disk.durable.len() < offset + data.len() {
                        disk.durable.resize(offset + data.len(), 0);
                    }
                    disk.durable[offset..offset + data.len()].copy_from_slice(&data);
                }
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut disk = self.0.lock();
        disk.call(false)?;
        let offset = offset as usize;
        if disk.seen.len() < offset + data.len() {
            disk.seen.resize(offset + data.len(), 0);
        }
        disk.seen[offset..offset + data.len()].copy_from_slice(data);
        disk.unsynced.push(Change::Write(offset, data.to_vec()));
        Ok(())
    }
}
