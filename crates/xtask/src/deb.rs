//! A Debian package of the program and the unit of its agent, written without Debian's tools.
//!
//! ```text
//! debian-binary     2.0
//! control.tar.gz    control: name, version, architecture and libraries, as the program itself says them
//! data.tar.gz       usr/bin/portolan, the unit, an example of its settings, the licence
//! ```
//!
//! There are no maintainer scripts: nothing is enabled, started, stopped or removed by an installation, an upgrade or a
//! removal. The same input gives the same bytes.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;

const UNIT: &str = include_str!("../../../deploy/agent/portolan-agent.service");
const SETTINGS: &str = include_str!("../../../deploy/agent/agent.env");
const LICENSE: &str = include_str!("../../../LICENSE");

/// Debian's architectures by the machine of a program's header.
const ARCHITECTURES: [(u16, &str); 6] = [
    (3, "i386"),
    (21, "ppc64el"),
    (22, "s390x"),
    (40, "armhf"),
    (62, "amd64"),
    (183, "arm64"),
];

/// Libraries by the packages that have them.
const LIBRARIES: [(&[u8], &str); 1] = [(b"libgcc_s.so.1", "libgcc-s1")];

/// Writes the package of a program into a directory and returns its path.
pub(crate) fn write(program: &Path, directory: &Path) -> Result<PathBuf> {
    let bytes = std::fs::read(program)
        .with_context(|| format!("cannot read the program {}", program.display()))?;
    let architecture = architecture(&bytes)
        .with_context(|| format!("{} is not a program for Debian", program.display()))?;
    let files = [
        ("./usr/bin/portolan", 0o755, bytes.as_slice()),
        (
            "./usr/lib/systemd/system/portolan-agent.service",
            0o644,
            UNIT.as_bytes(),
        ),
        (
            "./usr/share/doc/portolan/agent.env.example",
            0o644,
            SETTINGS.as_bytes(),
        ),
        (
            "./usr/share/doc/portolan/copyright",
            0o644,
            LICENSE.as_bytes(),
        ),
    ];
    let size: usize = files.iter().map(|(_, _, content)| content.len()).sum();
    let control = control(architecture, &depends(&bytes), size.div_ceil(1024));
    let parts = [
        ("debian-binary", b"2.0\n".to_vec()),
        (
            "control.tar.gz",
            packed(&[("./control", 0o644, control.as_bytes())])?,
        ),
        ("data.tar.gz", packed(&files)?),
    ];
    let path = directory.join(format!(
        "portolan_{}_{architecture}.deb",
        env!("CARGO_PKG_VERSION")
    ));
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&archive(&parts)?)?;
    file.persist(&path)?;
    Ok(path)
}

fn control(architecture: &str, depends: &[String], kilobytes: usize) -> String {
    let depends = if depends.is_empty() {
        String::new()
    } else {
        format!("Depends: {}\n", depends.join(", "))
    };
    format!(
        "Package: portolan\nVersion: {}\nArchitecture: {architecture}\nMaintainer: The Portolan developers <portolan-dev@users.noreply.github.com>\n\
         Installed-Size: {kilobytes}\n{depends}Section: admin\nPriority: optional\nHomepage: {}\n\
         Description: {}\n The program is client, server and agent. The unit portolan-agent.service is neither\n \
         enabled nor started: write /etc/portolan/agent.env first, as in\n /usr/share/doc/portolan/agent.env.example.\n",
        env!("CARGO_PKG_VERSION"),
        env!("CARGO_PKG_REPOSITORY"),
        "takes what a Git repository declares to where it runs",
    )
}

/// The architecture of a program.
fn architecture(program: &[u8]) -> Option<&'static str> {
    let header = program.first_chunk::<20>()?;
    let [0x7f, b'E', b'L', b'F', _, order, .., low, high] = *header else {
        return None;
    };
    let machine = match order {
        1 => u16::from_le_bytes([low, high]),
        _ => u16::from_be_bytes([low, high]),
    };
    let found = ARCHITECTURES.iter().find(|(known, _)| *known == machine);
    found.map(|(_, name)| *name)
}

/// The packages that a program needs: its symbols name the newest C library that it asks for.
fn depends(program: &[u8]) -> Vec<String> {
    const VERSION: &[u8] = b"GLIBC_2.";
    let newest = starts(program, VERSION).filter_map(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
        String::from_utf8_lossy(&digits.copied().collect::<Vec<u8>>())
            .parse::<u32>()
            .ok()
    });
    let mut depends = Vec::new();
    if let Some(newest) = newest.max() {
        depends.push(format!("libc6 (>= 2.{newest})"));
        let needed = LIBRARIES
            .iter()
            .filter(|(library, _)| starts(program, library).next().is_some());
        depends.extend(needed.map(|(_, package)| (*package).to_owned()));
    }
    depends
}

/// What follows each occurrence of some bytes.
fn starts<'a>(all: &'a [u8], wanted: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let last = all.len().saturating_sub(wanted.len());
    (0..last)
        .filter(move |at| all[*at] == wanted[0] && all[*at..].starts_with(wanted))
        .map(move |at| &all[at + wanted.len()..])
}

/// A compressed tar archive with the files and their directories, all owned by root and without a time.
fn packed(files: &[(&str, u32, &[u8])]) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    let mut made: Vec<String> = Vec::new();
    for (path, mode, content) in files {
        for (end, _) in path.match_indices('/') {
            let directory = format!("{}/", &path[..end]);
            if !made.contains(&directory) {
                append(
                    &mut archive,
                    &directory,
                    tar::EntryType::Directory,
                    0o755,
                    &[],
                )?;
                made.push(directory);
            }
        }
        append(&mut archive, path, tar::EntryType::Regular, *mode, content)?;
    }
    Ok(archive.into_inner()?.finish()?)
}

fn append(
    archive: &mut tar::Builder<GzEncoder<Vec<u8>>>,
    path: &str,
    kind: tar::EntryType,
    mode: u32,
    content: &[u8],
) -> Result<()> {
    let mut header = tar::Header::new_gnu();
    // The names begin with `./`, as dpkg writes them, which the library would take away.
    let name = header.as_old_mut().name.get_mut(..path.len());
    let Some(name) = name else {
        bail!("{path} is too long for an archive");
    };
    name.copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_username("root")?;
    header.set_groupname("root")?;
    header.set_mtime(0);
    header.set_size(content.len() as u64);
    header.set_cksum();
    archive.append(&header, content)?;
    Ok(())
}

/// The parts in the format of `ar`.
fn archive(parts: &[(&str, Vec<u8>)]) -> Result<Vec<u8>> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in parts {
        writeln!(
            bytes,
            "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`",
            0,
            0,
            0,
            "100644",
            content.len()
        )?;
        bytes.extend(content);
        if content.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    Ok(bytes)
}
