//! `docs/fleet-modules.md` is what the definitions of the modules say.

use portolan_modules::{MODULES, reference};

#[test]
fn the_reference_of_modules_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fleet-modules.md");
    let wanted = reference(MODULES);
    if std::env::var_os("PORTOLAN_UPDATE").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == wanted,
        "docs/fleet-modules.md is old: PORTOLAN_UPDATE=1 cargo test -p portolan-modules --test reference writes it"
    );
}

#[test]
fn every_parameter_is_explained_once() {
    for module in MODULES {
        assert!(module.summary.ends_with('.'), "{}", module.name);
        let mut names: Vec<&str> = module
            .parameters
            .iter()
            .map(|parameter| parameter.name)
            .collect();
        for parameter in module.parameters {
            assert!(
                parameter.summary.ends_with('.'),
                "{} {}",
                module.name,
                parameter.name
            );
        }
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{}", module.name);
    }
}
