//! Any text as a kustomization, a resource and a patch, cut at lines of `%%`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_kustomize::{LoadRestrictor, Options, Reorder, build, to_yaml};
use portolan_vfs::Memory;

fuzz_target!(|text: &str| {
    let mut parts = text.split("\n%%\n");
    let mut files = Memory::new();
    for path in ["/k/kustomization.yaml", "/k/a.yaml", "/k/p.yaml", "/base/kustomization.yaml"] {
        files.insert(path, parts.next().unwrap_or_default());
    }
    let options = Options {
        load_restrictor: LoadRestrictor::None,
        reorder: Reorder::None,
        ..Options::default()
    };
    if let Ok(set) = build("/k".into(), &files, &options) {
        let _ = to_yaml(&set);
    }
});
