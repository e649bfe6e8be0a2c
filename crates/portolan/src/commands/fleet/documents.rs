//! Objects in files, directories and standard input.

use camino::{Utf8Path, Utf8PathBuf};
use portolan_kinds::{FieldFault, KindObject};
use portolan_server::ObjectPath;
use portolan_yaml::{Dialect, Node, parse_bytes};

use crate::error::CommandError;
use crate::input::Input;

/// Files of objects.
#[derive(Debug, clap::Args)]
pub(crate) struct FileArgs {
    /// A file or directory of objects in YAML or JSON; `-` is standard input
    #[arg(
        short = 'f',
        long = "filename",
        value_name = "FILE",
        required = true,
        help_heading = "Input"
    )]
    pub(crate) files: Vec<Utf8PathBuf>,
}

/// An object and where it was written.
pub(crate) struct Document {
    pub(crate) object: KindObject,
    /// `web.yaml:12`
    pub(crate) place: String,
}

impl FileArgs {
    /// Reads all objects; every fault of all files is told at once.
    pub(crate) fn read(&self, namespace: &str) -> Result<Vec<Document>, CommandError> {
        let (mut documents, mut faults) = (Vec::new(), Vec::new());
        for file in self.inputs()? {
            let input = Input::read(&file)?;
            let parsed = parse_bytes(&input.bytes, Dialect::Kustomize);
            let nodes = match parsed {
                Ok(nodes) => nodes,
                Err(errors) => {
                    let first = errors.first();
                    faults.push(format!(
                        "{}:{}:{}: {}",
                        input.name, first.at.line, first.at.column, first.message
                    ));
                    continue;
                }
            };
            for node in nodes.iter().filter(|node| !node.is_null()) {
                match read(node, namespace) {
                    Ok(object) => documents.push(Document {
                        object,
                        place: format!("{}:{}", input.name, node.at.line),
                    }),
                    Err(found) => {
                        faults.extend(found.iter().map(|fault| shown(&input.name, fault)));
                    }
                }
            }
        }
        if !faults.is_empty() {
            return Err(CommandError::usage(faults.join("\n")));
        }
        if documents.is_empty() {
            return Err(CommandError::usage("there are no objects in the files"));
        }
        Ok(documents)
    }

    /// Every file, those of directories by name.
    fn inputs(&self) -> Result<Vec<Utf8PathBuf>, CommandError> {
        let mut inputs = Vec::new();
        for file in &self.files {
            if file != "-" && file.is_dir() {
                let before = inputs.len();
                add_directory(file, &mut inputs)?;
                inputs[before..].sort();
            } else {
                inputs.push(file.clone());
            }
        }
        Ok(inputs)
    }
}

fn add_directory(directory: &Utf8Path, inputs: &mut Vec<Utf8PathBuf>) -> Result<(), CommandError> {
    let cannot = |error: std::io::Error| {
        CommandError::user(anyhow::Error::new(error).context(format!("cannot read `{directory}`")))
    };
    for entry in directory.read_dir_utf8().map_err(cannot)? {
        let path = entry.map_err(cannot)?.into_path();
        let is_objects = matches!(path.extension(), Some("yaml" | "yml" | "json"));
        if path.is_dir() && !path.is_symlink() {
            add_directory(&path, inputs)?;
        } else if is_objects {
            inputs.push(path);
        }
    }
    Ok(())
}

/// Reads an object; a namespaced one without a namespace gets the one of the command.
fn read(node: &Node, namespace: &str) -> Result<KindObject, Vec<FieldFault>> {
    let mut object = KindObject::read(node)?;
    if object.kind.is_namespaced && object.metadata.namespace.is_none() {
        object.metadata.namespace = Some(namespace.to_owned());
    }
    Ok(object)
}

fn shown(file: &str, fault: &FieldFault) -> String {
    let hint = fault.hint.as_ref().map(|hint| format!(" ({hint})"));
    format!("{file}:{fault}{}", hint.unwrap_or_default())
}

/// The path of an object.
pub(crate) fn path_of(object: &KindObject) -> ObjectPath {
    ObjectPath {
        kind: object.kind,
        namespace: object.namespace().map(str::to_owned),
        name: Some(object.name().to_owned()),
    }
}
