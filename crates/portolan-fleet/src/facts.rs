//! Which facts a run gathers before its first step: those that are always there, and those that its book names.

use std::collections::BTreeSet;

use portolan_modules::{FactSource, Host};
use serde_json::{Map, Value, json};

/// Facts that cost next to nothing, and that every run has.
const ALWAYS: [&str; 5] = ["os", "kernel", "hostname", "cpus", "memory"];

/// Facts that are gathered only if a book names them.
const WANTED: [&str; 6] = [
    "network", "disks", "packages", "services", "users", "custom",
];

/// The directory of the machine's own programs that print facts.
pub const CUSTOM_FACTS: &str = "/etc/portolan/facts";

/// Gathers facts: those that every run has, and the wanted ones of the others; `*` stands for all. What cannot be found
/// out is missing, so that nobody takes it for empty.
pub fn gather_facts(host: &Host, wanted: &BTreeSet<String>) -> Value {
    let source = FactSource {
        host,
        custom: CUSTOM_FACTS.into(),
    };
    let is_wanted = |name: &&str| wanted.contains(*name) || wanted.contains("*");
    let parts = ALWAYS
        .into_iter()
        .chain(WANTED.into_iter().filter(is_wanted));
    let mut facts = Map::new();
    facts.insert("custom".to_owned(), json!({}));
    for part in parts {
        match source.gather(part) {
            Ok(value) => {
                facts.insert(part.to_owned(), value);
            }
            Err(error) => tracing::debug!(part, error, "a fact is not known"),
        }
    }
    Value::Object(facts)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use camino::Utf8Path;
    use portolan_modules::Root;

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
            ("etc/passwd", "web:x:33:33:Web:/var/www:/bin/sh\n"),
            (
                "var/lib/dpkg/status",
                "Package: a\nStatus: install ok installed\nVersion: 1:2.3\n\nPackage: b\nStatus: deinstall ok config-files\nVersion: 1\n",
            ),
        ] {
            let file = path.join(file);
            std::fs::create_dir_all(file.parent().expect("a directory")).expect("made");
            std::fs::write(file, text).expect("written");
        }
        let host = Host::local(Arc::new(Root::other(path).expect("a root")));
        let facts = gather_facts(&host, &BTreeSet::from(["*".to_owned()]));
        assert_eq!(
            (&facts["os"]["family"], &facts["os"]["version"]),
            (&json!("debian"), &json!("12"))
        );
        assert_eq!(facts["hostname"], json!("inner"));
        assert_eq!(facts["packages"], json!({"a": {"version": "1:2.3"}}));
        assert_eq!(facts["users"]["web"]["home"], json!("/var/www"));
        assert_eq!(
            (&facts["kernel"]["fromHost"], &facts["network"]["fromHost"]),
            (&json!(true), &json!(true))
        );
        let few = gather_facts(&host, &BTreeSet::new());
        assert!(few.get("packages").is_none() && few.get("os").is_some());
    }

    #[test]
    fn every_fact_has_the_type_that_books_are_checked_against() {
        let root = Root::machine().expect("the root directory");
        let host = Host::local(Arc::new(root));
        let facts = gather_facts(&host, &BTreeSet::from(["*".to_owned()]));
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
