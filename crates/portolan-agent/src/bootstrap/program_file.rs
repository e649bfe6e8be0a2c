//! The program that becomes the agent of another machine: which machines it runs on, and what its bytes are.

use std::fs::File;
use std::io::Read as _;

use camino::{Utf8Path, Utf8PathBuf};
use portolan_digest::Hasher;

use super::BootstrapError;

/// Machines by their number in a program's header, as `uname -m` calls them.
const MACHINES: [(u16, &str); 7] = [
    (3, "i686"),
    (21, "ppc64le"),
    (22, "s390x"),
    (40, "armv7l"),
    (62, "x86_64"),
    (183, "aarch64"),
    (243, "riscv64"),
];

/// How much of a program is read at once.
const PIECE: usize = 64 << 10;

/// A program for Linux.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgramFile {
    pub(crate) path: Utf8PathBuf,
    /// What it runs on, as `uname -m` says it.
    pub(crate) machine: &'static str,
    /// The SHA-256 digest of its bytes, as `sha256sum` prints it.
    pub(crate) digest: String,
}

impl ProgramFile {
    /// Reads a file.
    pub(crate) fn read(path: &Utf8Path) -> Result<Self, BootstrapError> {
        let failed = |source| BootstrapError::Program {
            path: path.to_owned(),
            source,
        };
        let mut file = File::open(path).map_err(failed)?;
        let mut header = [0; 20];
        let is_whole = file.read_exact(&mut header).is_ok();
        let machine = machine(&header).filter(|_| is_whole);
        let machine = machine.ok_or_else(|| BootstrapError::NoProgram(path.to_owned()))?;
        let mut digest = Hasher::default();
        digest.update(&header);
        let mut piece = vec![0; PIECE];
        loop {
            match file.read(&mut piece).map_err(failed)? {
                0 => break,
                count => digest.update(&piece[..count]),
            }
        }
        Ok(Self {
            path: path.to_owned(),
            machine,
            digest: digest.finish().hex(),
        })
    }
}

/// The machine that the header of an ELF file names.
fn machine(header: &[u8; 20]) -> Option<&'static str> {
    let [0x7f, b'E', b'L', b'F', _, order, .., low, high] = *header else {
        return None;
    };
    let number = match order {
        1 => u16::from_le_bytes([low, high]),
        2 => u16::from_be_bytes([low, high]),
        _ => return None,
    };
    let found = MACHINES.iter().find(|(known, _)| *known == number);
    found.map(|(_, name)| *name)
}

/// Whether a program for one machine runs on another: 32-bit kernels of a family have several names.
pub(crate) fn fits(program: &str, host: &str) -> bool {
    match program {
        "i686" => ["i386", "i486", "i586", "i686", "x86_64"].contains(&host),
        "armv7l" => ["armv7l", "armv8l"].contains(&host),
        _ => program == host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(order: u8, number: [u8; 2]) -> [u8; 20] {
        let mut header = [0; 20];
        header[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, order]);
        header[18..].copy_from_slice(&number);
        header
    }

    #[test]
    fn the_header_of_a_program_names_its_machine() {
        assert_eq!(machine(&header(1, [62, 0])), Some("x86_64"));
        assert_eq!(machine(&header(1, [183, 0])), Some("aarch64"));
        assert_eq!(machine(&header(2, [0, 22])), Some("s390x"));
        assert_eq!(machine(&header(1, [0, 22])), None);
        assert_eq!(machine(b"#!/bin/sh\nexit 0\n  \n"), None);
    }

    #[test]
    fn this_program_runs_here() {
        let path = std::env::current_exe().expect("a path");
        let path = Utf8PathBuf::try_from(path).expect("UTF-8");
        let program = ProgramFile::read(&path).expect("read");
        assert!(fits(program.machine, std::env::consts::ARCH) || cfg!(target_arch = "x86"));
        assert_eq!(program.digest.len(), 64);
    }
}
