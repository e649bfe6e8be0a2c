//! Facts: what is known about a node before its first step.
//!
//! Below another root directory, what belongs to the system (its release, users, packages, name) comes from the files of
//! that directory. Kernel, network and disks are those of the machine, and `fromHost` says so.

use std::collections::BTreeSet;

use portolan_modules::Root;
use serde_json::{Map, Value, json};

/// The most of one file that is read for facts, in bytes: a dpkg database of ten thousand packages has ten million.
const MAX_BYTES: u64 = 64 << 20;

/// Gathers facts. Those that cost something are gathered only if they are wanted: `network`, `disks`, `packages` and
/// `users`; `*` stands for all.
pub fn gather_facts(root: &Root, wanted: &BTreeSet<String>) -> Value {
    let wants = |name: &str| wanted.contains(name) || wanted.contains("*");
    let is_rooted = !root.is_machine();
    let mut facts = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        // What cannot be found out is not there, so that nobody takes it for empty.
        if let Some(value) = value {
            facts.insert(name.to_owned(), value);
        }
    };
    add("os", os(root));
    add("kernel", kernel(is_rooted));
    add("hostname", hostname(root));
    add(
        "cpus",
        std::thread::available_parallelism()
            .ok()
            .map(|count| json!(count.get())),
    );
    add("memory", memory());
    add("custom", Some(json!({})));
    if wants("network") {
        add("network", Some(network(is_rooted)));
    }
    if wants("disks") {
        add("disks", Some(disks()));
    }
    if wants("packages") {
        add("packages", packages(root));
    }
    if wants("users") {
        add("users", users(root));
    }
    Value::Object(facts)
}

fn of_root(root: &Root, path: &str) -> Option<String> {
    let bytes = root.read(path.into(), MAX_BYTES).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A file of the kernel's own file systems, which no root directory has.
fn of_machine(path: &str) -> Option<String> {
    std::fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn os(root: &Root) -> Option<Value> {
    let text = of_root(root, "/etc/os-release").or_else(|| of_root(root, "/usr/lib/os-release"))?;
    let field = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_default()
            .trim_matches(['"', '\''])
            .to_owned()
    };
    let (id, like) = (field("ID"), field("ID_LIKE"));
    let like: Vec<&str> = like.split_whitespace().collect();
    let is_of = |names: &[&str]| {
        names.contains(&id.as_str()) || like.iter().any(|name| names.contains(name))
    };
    let family = if is_of(&["debian", "ubuntu"]) {
        "debian"
    } else if is_of(&["rhel", "fedora", "centos"]) {
        "redhat"
    } else if is_of(&["suse", "opensuse"]) {
        "suse"
    } else {
        id.as_str()
    };
    Some(json!({
        "family": family, "id": id, "like": like, "name": field("NAME"), "version": field("VERSION_ID"),
        "codename": field("VERSION_CODENAME"),
    }))
}

fn kernel(is_rooted: bool) -> Option<Value> {
    Some(json!({
        "name": of_machine("/proc/sys/kernel/ostype")?,
        "release": of_machine("/proc/sys/kernel/osrelease")?,
        "machine": std::env::consts::ARCH,
        "fromHost": is_rooted,
    }))
}

fn hostname(root: &Root) -> Option<Value> {
    let name = if root.is_machine() {
        of_machine("/proc/sys/kernel/hostname")
    } else {
        of_root(root, "/etc/hostname")
    };
    name.map(|name| json!(name.trim()))
}

fn memory() -> Option<Value> {
    let text = of_machine("/proc/meminfo")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(json!({"totalBytes": kilobytes * 1_024}))
}

fn network(is_rooted: bool) -> Value {
    let mut interfaces = Vec::new();
    for name in names_in("/sys/class/net") {
        let field =
            |field: &str| of_machine(&format!("/sys/class/net/{name}/{field}")).unwrap_or_default();
        interfaces.push(json!({
            "name": name, "mac": field("address"), "mtu": field("mtu").parse::<u64>().unwrap_or_default(),
            "up": field("operstate") == "up",
        }));
    }
    let mut addresses = local_addresses(&of_machine("/proc/net/fib_trie").unwrap_or_default());
    let six = of_machine("/proc/net/if_inet6").unwrap_or_default();
    addresses.extend(six.lines().filter_map(|line| {
        let bits = u128::from_str_radix(line.split_whitespace().next()?, 16).ok()?;
        Some(std::net::Ipv6Addr::from(bits).to_string())
    }));
    json!({"interfaces": interfaces, "addresses": addresses, "fromHost": is_rooted})
}

/// The machine's own addresses in the kernel's routing table, each once.
fn local_addresses(table: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut last = "";
    for line in table.lines() {
        if let Some(address) = line.trim().strip_prefix("|-- ") {
            last = address;
        } else if line.trim() == "/32 host LOCAL" {
            found.insert(last.to_owned());
        }
    }
    found.into_iter().collect()
}

fn disks() -> Value {
    let mut disks = Vec::new();
    for name in names_in("/sys/block") {
        if ["loop", "ram", "zram"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
        {
            continue;
        }
        let field =
            |field: &str| of_machine(&format!("/sys/block/{name}/{field}")).unwrap_or_default();
        let sectors: u64 = field("size").parse().unwrap_or_default();
        disks.push(json!({
            "name": name, "bytes": sectors * 512, "rotational": field("queue/rotational") == "1",
        }));
    }
    Value::Array(disks)
}

fn names_in(directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Installed packages with their versions; `None` without a dpkg database.
fn packages(root: &Root) -> Option<Value> {
    let text = of_root(root, "/var/lib/dpkg/status")?;
    let mut packages = Map::new();
    for stanza in text.split("\n\n") {
        let field = |name: &str| {
            let line = stanza
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(str::trim)
        };
        if field("Status").is_some_and(|status| status.ends_with(" installed"))
            && let (Some(name), Some(version)) = (field("Package"), field("Version"))
        {
            packages.insert(name.to_owned(), json!(version));
        }
    }
    Some(Value::Object(packages))
}

fn users(root: &Root) -> Option<Value> {
    let text = of_root(root, "/etc/passwd")?;
    let mut users = Map::new();
    for line in text.lines() {
        if let [name, _, uid, gid, _, home, shell] = line.split(':').collect::<Vec<_>>()[..]
            && let (Ok(uid), Ok(gid)) = (uid.parse::<u32>(), gid.parse::<u32>())
        {
            let user = json!({"uid": uid, "gid": gid, "home": home, "shell": shell});
            users.insert(name.to_owned(), user);
        }
    }
    Some(Value::Object(users))
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::*;

    #[test]
    fn facts_of_another_root_come_from_its_files() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = Utf8Path::from_path(scratch.path()).expect("UTF-8");
        for (file, text) in [
            (
                "etc/os-release",
                "NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\nVERSION_CODENAME=bookworm\n",
            ),
            ("etc/hostname", "inner\n"),
            ("etc/passwd", "web:x:33:33:Web:/var/www:/bin/sh\nbroken\n"),
            (
                "var/lib/dpkg/status",
                "Package: a\nStatus: install ok installed\nVersion: 1:2.3\n\nPackage: b\nStatus: deinstall ok config-files\nVersion: 1\n",
            ),
        ] {
            let file = path.join(file);
            std::fs::create_dir_all(file.parent().expect("a directory")).expect("made");
            std::fs::write(file, text).expect("written");
        }
        let root = Root::other(path).expect("a root");
        let facts = gather_facts(&root, &BTreeSet::from(["*".to_owned()]));
        assert_eq!(
            (&facts["os"]["family"], &facts["os"]["version"]),
            (&json!("debian"), &json!("12"))
        );
        assert_eq!(facts["hostname"], json!("inner"));
        assert_eq!(facts["packages"], json!({"a": "1:2.3"}));
        assert_eq!(facts["users"]["web"]["home"], json!("/var/www"));
        assert_eq!(
            (&facts["kernel"]["fromHost"], &facts["network"]["fromHost"]),
            (&json!(true), &json!(true))
        );
        let few = gather_facts(&root, &BTreeSet::new());
        assert!(few.get("packages").is_none() && few.get("os").is_some());
    }

    #[test]
    fn every_fact_has_the_type_that_books_are_checked_against() {
        let root = Root::machine().expect("the root directory");
        let facts = gather_facts(&root, &BTreeSet::from(["*".to_owned()]));
        let portolan_cel::Type::Record(known) = crate::known::fact_types() else {
            unreachable!("facts are a record")
        };
        for (name, value) in facts.as_object().expect("a map") {
            let expected = known
                .get(name)
                .unwrap_or_else(|| unreachable!("`{name}` is not known"));
            assert!(expected.meets(&crate::known::type_of(value)), "{name}");
        }
    }
}
