//! Every object that the corpus renders: thousands of real ones.

use std::path::{Path, PathBuf};

use portolan_object::{Digest, ImageRef, Object, Origin, Scope, expand_lists, images, scope};
use portolan_yaml::{Dialect, parse};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpus");

fn yaml_files(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            yaml_files(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            files.push(path);
        }
    }
}

/// The objects of all rendered files. Helm prints whatever a template says, so not every file is YAML throughout.
fn objects() -> Vec<Object> {
    let mut files = Vec::new();
    for part in ["expected", "flux-expected"] {
        yaml_files(&Path::new(CORPUS).join(part), &mut files);
    }
    let texts = files
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok());
    let documents = texts
        .filter_map(|text| parse(text, Dialect::Helm).ok())
        .flatten();
    let objects = documents.flat_map(expand_lists);
    objects
        .filter_map(|object| Object::new(object, Origin::default()).ok())
        .collect()
}

#[test]
fn every_rendered_object_has_an_id_a_digest_and_images_that_parse() {
    if portolan_testbed::corpus("expected").is_none() {
        return;
    }
    let objects = objects();
    assert!(objects.len() > 5_000, "only {} objects", objects.len());
    let mut found = 0;
    for object in &objects {
        assert!(object.id().to_string().ends_with(object.name()));
        Digest::of_node(object.node()).expect("a digest");
        for image in images(object.gvk(), object.node()) {
            found += 1;
            let parsed = image.reference.parse::<ImageRef>();
            assert!(
                parsed.is_ok(),
                "{}: {} at {}",
                object.id(),
                image.reference,
                image.path
            );
        }
    }
    assert!(found > 1_000, "only {found} images");
}

/// Charts leave the namespace out of cluster-wide objects; a kind in the wrong scope would show here at once.
#[test]
fn hardly_any_cluster_wide_object_names_a_namespace() {
    let objects = objects();
    let of_cluster = |object: &&Object| scope(object.gvk()) == Some(Scope::Cluster);
    let total = objects.iter().filter(of_cluster).count();
    let placed = objects
        .iter()
        .filter(of_cluster)
        .filter(|object| !object.namespace().is_empty())
        .count();
    assert!(placed * 20 <= total, "{placed} of {total}");
}
