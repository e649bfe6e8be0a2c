//! Any bytes as the only resource of a kustomization that changes everything it can.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portolan_kustomize::{Options, build, to_yaml};
use portolan_vfs::Memory;

const KUSTOMIZATION: &str = "\
resources: [a.yaml]
namespace: n
namePrefix: p-
commonLabels: {l: x}
commonAnnotations: {a: x}
images: [{name: a, newTag: b}]
";

fuzz_target!(|bytes: &[u8]| {
    let mut files = Memory::new();
    files.insert("/kustomization.yaml", KUSTOMIZATION);
    files.insert("/a.yaml", bytes);
    if let Ok(set) = build("/".into(), &files, &Options::default()) {
        let _ = to_yaml(&set);
    }
});
