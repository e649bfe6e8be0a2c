//! The operating system, the kernel, and the size of the machine.

use serde_json::{Value, json};

use super::{FactSource, read_kernel};

/// Families by the words of `ID` and `ID_LIKE`.
const FAMILIES: [(&str, &str); 9] = [
    ("debian", "debian"),
    ("ubuntu", "debian"),
    ("rhel", "redhat"),
    ("fedora", "redhat"),
    ("centos", "redhat"),
    ("suse", "suse"),
    ("opensuse", "suse"),
    ("alpine", "alpine"),
    ("arch", "arch"),
];

pub(super) fn os(source: &FactSource<'_>) -> Result<Value, String> {
    let text = match source.read_own("/etc/os-release")? {
        Some(text) => Some(text),
        None => source.read_own("/usr/lib/os-release")?,
    };
    let text = text.ok_or("there is no `/etc/os-release`")?;
    Ok(read_os_release(&text))
}

fn read_os_release(text: &str) -> Value {
    let field = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let value = lines.find(|(key, _)| *key == name).map(|(_, value)| value);
        let value = value.unwrap_or_default().trim();
        value.trim_matches(['"', '\'']).to_owned()
    };
    let id = field("ID");
    let like: Vec<String> = field("ID_LIKE").split(' ').map(str::to_owned).collect();
    let like: Vec<String> = like.into_iter().filter(|word| !word.is_empty()).collect();
    let mut words = std::iter::once(&id).chain(&like);
    let family = words.find_map(|word| {
        let known = FAMILIES.iter().find(|(start, _)| word.starts_with(start));
        known.map(|(_, family)| *family)
    });
    json!({
        "family": family.unwrap_or(&id), "name": field("NAME"), "version": field("VERSION_ID"),
        "codename": field("VERSION_CODENAME"), "like": like, "id": id,
    })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every part is found out by a function of this type"
)]
pub(super) fn kernel(source: &FactSource<'_>) -> Result<Value, String> {
    let names = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    Ok(json!({
        "name": text(names.sysname()), "release": text(names.release()),
        "machine": text(names.machine()), "fromHost": source.host.is_rooted(),
    }))
}

pub(super) fn hostname(source: &FactSource<'_>) -> Result<Value, String> {
    if source.host.is_rooted() {
        let text = source.read_own("/etc/hostname")?;
        let text = text.ok_or("there is no `/etc/hostname`")?;
        return Ok(text.trim().into());
    }
    let names = rustix::system::uname();
    Ok(names.nodename().to_string_lossy().into())
}

pub(super) fn cpus(_: &FactSource<'_>) -> Result<Value, String> {
    let count = std::thread::available_parallelism();
    let count = count.map_err(|error| format!("cannot count the processors: {error}"))?;
    Ok(count.get().into())
}

pub(super) fn memory(_: &FactSource<'_>) -> Result<Value, String> {
    let text = read_kernel("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes = kilobytes.and_then(|number| number.trim().parse::<u64>().ok());
    let kilobytes = kilobytes.ok_or("`/proc/meminfo` has no `MemTotal`")?;
    Ok(json!({"totalBytes": kilobytes * 1024}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_come_from_the_id_or_what_the_system_is_like() {
        let family = |text: &str| read_os_release(text)["family"].clone();
        assert_eq!(family("ID=debian\nVERSION_ID=\"12\""), "debian");
        assert_eq!(family("ID=linuxmint\nID_LIKE=\"ubuntu debian\""), "debian");
        assert_eq!(
            family("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\""),
            "redhat"
        );
        assert_eq!(family("ID=opensuse-leap\n"), "suse");
        assert_eq!(family("ID=nixos\n"), "nixos");
        let read = read_os_release("NAME='Debian GNU/Linux'\nVERSION_CODENAME=bookworm\n");
        assert_eq!(
            (&read["name"], &read["codename"]),
            (&json!("Debian GNU/Linux"), &json!("bookworm"))
        );
    }
}
