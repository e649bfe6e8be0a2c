//! The kustomization file that Flux builds: found in the directory or generated for it, with the spec merged in.
//!
//! ```text
//! spec.path ──▶ existing kustomization.yaml, or one that lists every manifest ──▶ + spec fields ──▶ kustomize
//! ```

use camino::{Utf8Path, Utf8PathBuf};
use portolan_vfs::{Vfs, VfsError, relative, resolve};
use portolan_yaml::{Dialect, List, Map, Node, Position, Text, Value};

use crate::api::Kustomization;

/// The names of a kustomization file; the first that exists is taken.
pub(crate) const FILE_NAMES: [&str; 3] =
    ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// How deep a directory without a kustomization file is searched for manifests.
const MAX_DEPTH: usize = 128;

/// Beginnings of a component that would not lie in the source.
const REMOTE: [&str; 8] = [
    "git::",
    "gh:",
    "ssh://",
    "http://",
    "https://",
    "git@",
    "github.com:",
    "github.com/",
];

/// Why there is nothing to build.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// `spec.path` leads nowhere.
    #[error(
        "kustomization path `{}` does not exist in the source",
        _0.as_str().trim_start_matches('/')
    )]
    NoPath(Utf8PathBuf),
    /// A file cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file or directory.
        path: Utf8PathBuf,
        /// Why not.
        #[source]
        source: VfsError,
    },
    /// A file in the scanned directory holds no Kubernetes objects.
    #[error("failed to decode Kubernetes YAML from `{path}`: {reason}")]
    Decode {
        /// The file.
        path: Utf8PathBuf,
        /// Where in it.
        at: Position,
        /// What is wrong with it.
        reason: String,
    },
    /// A component does not lie in the source.
    #[error("component path `{0}` must be local and relative")]
    RemoteComponent(Text),
    /// Directories are nested too deep.
    #[error("directories are nested deeper than {MAX_DEPTH} at `{0}`")]
    TooDeep(Utf8PathBuf),
}

/// The directory of a Kustomization inside its source; `..` cannot leave it.
pub(crate) fn directory(kustomization: &Kustomization) -> Utf8PathBuf {
    resolve(
        Utf8Path::new("/"),
        kustomization.path.trim_start_matches('/'),
    )
}

/// Finds or generates the directory's kustomization file and merges the spec into it.
pub(crate) fn kustomization_file(
    files: &dyn Vfs,
    directory: &Utf8Path,
    spec: &Kustomization,
) -> Result<Node, GenerateError> {
    if !files.is_directory(directory) {
        return Err(GenerateError::NoPath(directory.to_owned()));
    }
    let mut file = match existing(files, directory) {
        Some(path) => read_file(files, &path)?,
        None => generate(files, directory)?,
    };
    merge_spec(&mut file, files, directory, spec)?;
    Ok(Node::new(Value::Map(file)))
}

pub(crate) fn existing(files: &dyn Vfs, directory: &Utf8Path) -> Option<Utf8PathBuf> {
    FILE_NAMES
        .iter()
        .map(|name| directory.join(name))
        .find(|path| files.is_file(path))
}

fn read_file(files: &dyn Vfs, path: &Utf8Path) -> Result<Map, GenerateError> {
    let decode = |at, reason: String| GenerateError::Decode {
        path: path.to_owned(),
        at,
        reason,
    };
    let bytes = read(files, path)?;
    let node = portolan_yaml::parse_bytes(&bytes, Dialect::Helm)
        .map_err(|errors| decode(errors.first().at, errors.to_string()))?;
    let mut map = match node.into_iter().next() {
        Some(Node {
            value: Value::Map(map),
            ..
        }) => map,
        None => Map::new(),
        Some(node) if node.is_null() => Map::new(),
        Some(node) => {
            return Err(decode(node.at, "a kustomization file is a map".to_owned()));
        }
    };
    let no_resources = map
        .get("resources")
        .and_then(Node::as_list)
        .is_none_or(List::is_empty);
    if no_resources {
        // kustomize refuses a file that says nothing; Flux makes it say something.
        map.insert("buildMetadata", strings(["originAnnotations"]));
    }
    Ok(map)
}

/// A file that lists every manifest and every directory with a kustomization file of its own.
fn generate(files: &dyn Vfs, directory: &Utf8Path) -> Result<Map, GenerateError> {
    let mut resources = Vec::new();
    scan(files, directory, directory, 0, &mut resources)?;
    let mut map = Map::new();
    map.insert(
        "apiVersion",
        Node::string("kustomize.config.k8s.io/v1beta1"),
    );
    map.insert("kind", Node::string("Kustomization"));
    if resources.is_empty() {
        // As above: an empty file would be refused.
        map.insert("namespace", Node::string("_placeholder"));
    }
    map.insert(
        "resources",
        Node::new(Value::List(List::from_items(resources))),
    );
    Ok(map)
}

fn scan(
    files: &dyn Vfs,
    root: &Utf8Path,
    directory: &Utf8Path,
    depth: usize,
    resources: &mut Vec<Node>,
) -> Result<(), GenerateError> {
    if depth > MAX_DEPTH {
        return Err(GenerateError::TooDeep(directory.to_owned()));
    }
    let entries = files.list(directory);
    let entries = entries.map_err(|source| GenerateError::Read {
        path: directory.to_owned(),
        source,
    })?;
    for entry in entries {
        let path = directory.join(&entry.name);
        if entry.is_directory && existing(files, &path).is_none() {
            scan(files, root, &path, depth + 1, resources)?;
        } else if entry.is_directory || is_manifest(&path) {
            if !entry.is_directory {
                check_objects(files, &path)?;
            }
            resources.push(Node::string(format!("./{}", relative(root, &path))));
        }
    }
    Ok(())
}

pub(crate) fn is_manifest(path: &Utf8Path) -> bool {
    matches!(path.extension(), Some("yaml" | "yml"))
}

/// Every document must be an object, or the whole build fails naming the file.
fn check_objects(files: &dyn Vfs, path: &Utf8Path) -> Result<(), GenerateError> {
    let decode = |at, reason: String| GenerateError::Decode {
        path: path.to_owned(),
        at,
        reason,
    };
    let bytes = read(files, path)?;
    let documents = portolan_yaml::parse_bytes(&bytes, Dialect::Kustomize)
        .map_err(|errors| decode(errors.first().at, errors.to_string()))?;
    for document in documents.iter().filter(|document| !document.is_null()) {
        let kind = document
            .get("kind")
            .and_then(Node::as_str)
            .unwrap_or_default();
        let name = document
            .at_path(&["metadata", "name"])
            .and_then(Node::as_str)
            .unwrap_or_default();
        if kind.is_empty() {
            return Err(decode(document.at, "missing kind in object".to_owned()));
        }
        if name.is_empty() && !kind.ends_with("List") {
            let reason = "missing metadata.name in object".to_owned();
            return Err(decode(document.at, reason));
        }
    }
    Ok(())
}

fn read(files: &dyn Vfs, path: &Utf8Path) -> Result<Vec<u8>, GenerateError> {
    files.read(path).map_err(|source| GenerateError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Merges the spec in Flux's order: names replace, lists are appended, images are merged by name.
fn merge_spec(
    file: &mut Map,
    files: &dyn Vfs,
    directory: &Utf8Path,
    spec: &Kustomization,
) -> Result<(), GenerateError> {
    let replace = [
        ("namespace", &spec.target_namespace),
        ("namePrefix", &spec.name_prefix),
        ("nameSuffix", &spec.name_suffix),
    ];
    for (field, value) in replace {
        if let Some(value) = value {
            file.insert(field, Node::string(value.clone()));
        }
    }
    append(file, "patches", spec.patches.as_ref());
    for component in &spec.components {
        if Utf8Path::new(component).is_absolute()
            || REMOTE.iter().any(|start| component.starts_with(start))
        {
            return Err(GenerateError::RemoteComponent(component.clone()));
        }
        if spec.ignore_missing_components && !files.is_directory(&resolve(directory, component)) {
            continue;
        }
        change_items(file, "components", |items| {
            items.push(Node::string(component.clone()));
        });
    }
    append(
        file,
        "patchesStrategicMerge",
        spec.patches_strategic_merge.as_ref(),
    );
    append(file, "patchesJson6902", spec.patches_json6902.as_ref());
    for image in spec.images.iter().filter_map(Node::as_list).flatten() {
        change_items(file, "images", |images| merge_image(images, image));
    }
    if let Some(metadata) = &spec.build_metadata
        && metadata.as_list().is_some_and(|list| !list.is_empty())
    {
        file.insert("buildMetadata", metadata.clone());
    }
    Ok(())
}

fn append(file: &mut Map, field: &str, more: Option<&Node>) {
    if let Some(list) = more.and_then(Node::as_list) {
        change_items(file, field, |items| items.extend(list.iter().cloned()));
    }
}

/// Changes the items of a list in the file; the list is made when it is not there.
fn change_items(file: &mut Map, field: &str, change: impl FnOnce(&mut Vec<Node>)) {
    let node = file.get_or_insert_with(field, Node::list);
    if node.as_list().is_none() {
        *node = Node::list();
    }
    if let Some(list) = node.as_list_mut() {
        change(list.items_mut());
    }
}

/// A tag or digest replaces both of what is there; a new name replaces the name.
fn merge_image(images: &mut Vec<Node>, image: &Node) {
    let name = image.get("name").and_then(Node::as_str);
    let there = images
        .iter_mut()
        .find(|other| other.get("name").and_then(Node::as_str) == name);
    let Some(target) = there.and_then(Node::as_map_mut) else {
        images.push(image.clone());
        return;
    };
    if let Some(new_name) = image.get("newName") {
        target.insert("newName", new_name.clone());
    }
    if image.get("newTag").is_some() || image.get("digest").is_some() {
        for field in ["newTag", "digest"] {
            target.remove(field);
            if let Some(value) = image.get(field) {
                target.insert(field, value.clone());
            }
        }
    }
}

fn strings<const N: usize>(texts: [&'static str; N]) -> Node {
    let items = texts
        .into_iter()
        .map(|text| Node::string(Text::from_static(text)))
        .collect();
    Node::new(Value::List(List::from_items(items)))
}
