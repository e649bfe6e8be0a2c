//! The document of `kind: Ship` in `portolan.yaml`: which artifacts there are, and how each is built.
//!
//! ```text
//! text ──▶ documents ──▶ the one of kind Ship ──variables──▶ fields ──▶ Ship, or every fault with its place
//! ```

mod adjust;
mod artifact;
mod check;
mod deploy;
mod dev;
mod effective;
mod fields;
mod placement;
mod words;

use std::collections::BTreeMap;

use portolan_envsubst::Unset;
use portolan_object::similar;
use portolan_yaml::{Dialect, List, Map, Node, Position, Scalar, Text, Value, parse};

pub use adjust::Adjustments;
#[cfg(test)]
pub(crate) use artifact::fields_of;
pub use artifact::{
    Artifact, ArtifactSource, BaseImage, CommandOutput, CommandSource, DockerfileEngine,
    DockerfileSource, FileTime, OciSource, SecretPlace, SecretSource,
};
#[cfg(test)]
pub(crate) use check::check_fields;
pub use check::{
    ArtifactTest, ClusterCheck, CommandCheck, ConfigCheck, DeployCheck, FileCheck, HttpCheck,
    HttpTarget, ImageCheck, TestSource, VerifySource,
};
#[cfg(test)]
pub(crate) use deploy::deploy_fields;
pub use deploy::{
    AfterFailure, DeploySource, DeployStep, FluxSource, GitSource, HelmSource, RolloutSource,
};
#[cfg(test)]
pub(crate) use dev::dev_fields;
pub use dev::{DevSettings, ForwardRule, SyncRule};
pub use effective::{Effective, EffectiveValue, effective};
pub use fields::Fault;
use fields::{Faults, Fields};
pub use words::{parse_namespace, parse_registry, parse_set};

/// The API version of the document.
pub const API_VERSION: &str = "portolan.dev/v1alpha1";

/// The kind of the document.
pub const KIND: &str = "Ship";

/// The longest document that is read.
pub const MAX_DOCUMENT_BYTES: usize = 4 << 20;

/// The most artifacts of a document, and the most deploy steps.
pub const MAX_ARTIFACTS: usize = 10_000;

/// How deep a document may nest.
const MAX_DEPTH: usize = 100;

/// The most values of a document, with those counted again that aliases repeat.
const MAX_VALUES: usize = 1_000_000;

/// The most bytes of all texts together after variables were put in.
const MAX_FILLED_BYTES: usize = 16 << 20;

/// Variables that builders and deployers put in themselves: they are left for them.
const OF_BUILDERS: &[&str] = &["arch", "os", "platform", "DIGEST"];

/// What is built.
#[derive(Debug, Clone, PartialEq)]
pub struct Ship {
    /// Its name.
    pub name: String,
    /// What is built, in the document's order.
    pub artifacts: Vec<Artifact>,
    /// How artifacts are tested, in the document's order.
    pub tests: Vec<ArtifactTest>,
    /// What is deployed, in the document's order.
    pub deploy: Vec<DeployStep>,
    /// How what was deployed is verified, in the document's order.
    pub verify: Vec<DeployCheck>,
    /// What `portolan dev` does besides.
    pub dev: DevSettings,
}

/// Why a document cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// There is none.
    #[error("there is no document of `kind: Ship`")]
    None,
    /// There are several.
    #[error("there is a second document of `kind: Ship` at line {0}")]
    Several(u32),
    /// It is too long.
    #[error("the file has {0} bytes; the most is {MAX_DOCUMENT_BYTES}")]
    TooLong(usize),
    /// Something in it is wrong: all of it.
    #[error("{}", .0.first().map_or("", |fault| fault.message.as_str()))]
    Faults(Vec<Fault>),
}

impl Ship {
    /// Reads the document of `kind: Ship` of a file; documents of other kinds are left to others.
    ///
    /// `variable` answers what `${NAME}` stands for.
    pub fn read(
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, DocumentError> {
        Self::read_adjusted(text, variable, &Adjustments::default())
    }

    /// Reads the document of `kind: Ship` after profiles and values of the command line were laid over it.
    ///
    /// # Errors
    /// When there is none or several, or with every fault of it.
    pub fn read_adjusted(
        text: &str,
        variable: &dyn Fn(&str) -> Option<String>,
        asked: &Adjustments,
    ) -> Result<Self, DocumentError> {
        let document = adjust::adjust(&find(text)?, asked).map_err(DocumentError::Faults)?;
        Self::read_document(&document, variable, asked).map(|(ship, _)| ship)
    }

    /// Reads a document, and returns it with variables put in as well.
    fn read_document(
        ship: &Node,
        variable: &dyn Fn(&str) -> Option<String>,
        asked: &Adjustments,
    ) -> Result<(Self, Node), DocumentError> {
        let mut filling = Filling::new(variable);
        let filled = filling.fill(ship, MAX_DEPTH);
        let mut faults = filling.faults;
        let mut read = read(&filled, &mut faults);
        placement::put_registry(&mut read, asked, &mut faults);
        if faults.is_empty() {
            return Ok((read, filled));
        }
        faults.sort_by_key(|fault| (fault.at.line, fault.at.column));
        Err(DocumentError::Faults(faults))
    }

    /// The artifact of a name.
    pub fn artifact(&self, name: &str) -> Option<&Artifact> {
        self.artifacts.iter().find(|artifact| artifact.name == name)
    }
}

/// Whether a file has a document of `kind: Ship`, whatever is in it.
///
/// # Errors
/// When the file is too long or not YAML.
pub fn has_document(text: &str) -> Result<bool, DocumentError> {
    match find(text) {
        Ok(_) | Err(DocumentError::Several(_)) => Ok(true),
        Err(DocumentError::None) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The one document of `kind: Ship` in a file.
fn find(text: &str) -> Result<Node, DocumentError> {
    if text.len() > MAX_DOCUMENT_BYTES {
        return Err(DocumentError::TooLong(text.len()));
    }
    let documents = parse(text.to_owned(), Dialect::Helm).map_err(|errors| {
        let first = errors.first();
        DocumentError::Faults(vec![fault(first.at, first.message.clone())])
    })?;
    let word = |node: &Node, key: &str| node.get(key).and_then(Node::as_str).map(str::to_owned);
    let is_ship = |node: &Node| word(node, "kind").as_deref() == Some(KIND);
    let mut ships = documents.into_iter().filter(is_ship);
    let ship = ships.next().ok_or(DocumentError::None)?;
    if let Some(second) = ships.next() {
        return Err(DocumentError::Several(second.at.line));
    }
    match word(&ship, "apiVersion") {
        Some(version) if version == API_VERSION => Ok(ship),
        version => Err(DocumentError::Faults(vec![Fault {
            at: ship.get("apiVersion").map_or(ship.at, |node| node.at),
            message: match version {
                Some(version) => {
                    format!("`{version}` is no version of a document of `kind: {KIND}`")
                }
                None => "`apiVersion` is missing".to_owned(),
            },
            hint: Some(format!("write `apiVersion: {API_VERSION}`")),
        }])),
    }
}

fn fault(at: Position, message: String) -> Fault {
    Fault {
        at,
        message,
        hint: None,
    }
}

fn read(node: &Node, faults: &mut Faults) -> Ship {
    let root = Fields::of(
        node,
        String::new(),
        &["apiVersion", "kind", "metadata", "spec"],
        faults,
    );
    let metadata = root.map("metadata", &["name"], faults);
    let name = metadata.map(|metadata| metadata.required("name", faults));
    let (mut artifacts, mut deploy) = (Vec::new(), Vec::new());
    let (mut tests, mut verify) = (Vec::new(), Vec::new());
    let known = &["artifacts", "tests", "deploy", "verify", "dev"];
    let mut dev = DevSettings::default();
    if let Some(spec) = root.map("spec", known, faults) {
        for (item, path) in entries(&spec, "artifacts", faults) {
            artifacts.extend(Artifact::read(item, path, faults));
        }
        for (item, path) in entries(&spec, "deploy", faults) {
            deploy.extend(DeployStep::read(item, path, faults));
        }
        for (item, path) in entries(&spec, "tests", faults) {
            tests.extend(ArtifactTest::read(item, path, faults));
        }
        for (item, path) in entries(&spec, "verify", faults) {
            verify.extend(DeployCheck::read(item, path, faults));
        }
        dev = DevSettings::read(&spec, &artifacts, faults);
    }
    let parts: Vec<Part<'_>> = artifacts.iter().map(Part::of_artifact).collect();
    check_parts("artifact", &parts, faults);
    let parts: Vec<Part<'_>> = deploy.iter().map(Part::of_step).collect();
    check_parts("deploy step", &parts, faults);
    check_checks(&tests, &verify, &artifacts, &deploy, faults);
    for step in &deploy {
        check_artifacts(
            step.at,
            &format!("the step `{}`", step.name),
            step.artifacts(),
            &artifacts,
            faults,
        );
    }
    Ship {
        name: name.unwrap_or_default(),
        artifacts,
        tests,
        deploy,
        verify,
        dev,
    }
}

/// Tests name artifacts, and verifications deploy steps.
fn check_checks(
    tests: &[ArtifactTest],
    verify: &[DeployCheck],
    artifacts: &[Artifact],
    deploy: &[DeployStep],
    faults: &mut Faults,
) {
    let part = |name, at| Part {
        name,
        needs: Vec::new(),
        at,
    };
    let parts: Vec<Part<'_>> = tests.iter().map(|test| part(&test.name, test.at)).collect();
    check_parts("test", &parts, faults);
    let parts: Vec<Part<'_>> = verify.iter().map(|one| part(&one.name, one.at)).collect();
    check_parts("verification", &parts, faults);
    for test in tests {
        let names = test.artifacts.iter().map(String::as_str);
        check_artifacts(
            test.at,
            &format!("the test `{}`", test.name),
            names,
            artifacts,
            faults,
        );
    }
    for one in verify {
        for need in &one.needs {
            if deploy.iter().all(|step| step.name != *need) {
                let near = similar(need, deploy.iter(), |step| &step.name);
                faults.push(Fault {
                    at: one.at,
                    message: format!(
                        "`{}` needs the deploy step `{need}`, which is not there",
                        one.name
                    ),
                    hint: near.map(|near| format!("did you mean `{}`?", near.name)),
                });
            }
        }
    }
}

/// Artifacts that something names must be there.
fn check_artifacts<'a>(
    at: Position,
    what: &str,
    names: impl Iterator<Item = &'a str>,
    artifacts: &[Artifact],
    faults: &mut Faults,
) {
    for name in names {
        if artifacts.iter().all(|artifact| artifact.name != name) {
            let near = similar(name, artifacts.iter(), |artifact| &artifact.name);
            faults.push(Fault {
                at,
                message: format!("{what} names the artifact `{name}`, which is not there"),
                hint: near.map(|near| format!("did you mean `{}`?", near.name)),
            });
        }
    }
}

/// The items of a list, within the limit.
fn entries<'a>(spec: &Fields<'a>, key: &str, faults: &mut Faults) -> Vec<(&'a Node, String)> {
    let mut items = spec.items(key, faults).unwrap_or_default();
    if items.len() > MAX_ARTIFACTS {
        let count = items.len();
        faults.push(fault(
            spec.at(),
            format!(
                "`{}` has {count} entries; the most is {MAX_ARTIFACTS}",
                spec.path_of(key)
            ),
        ));
        items.truncate(MAX_ARTIFACTS);
    }
    items
}

/// Something with a name that needs others of its kind.
struct Part<'a> {
    name: &'a str,
    needs: Vec<&'a str>,
    at: Position,
}

impl<'a> Part<'a> {
    fn of_artifact(artifact: &'a Artifact) -> Self {
        Self {
            name: &artifact.name,
            needs: artifact.all_needs(),
            at: artifact.at,
        }
    }

    fn of_step(step: &'a DeployStep) -> Self {
        Self {
            name: &step.name,
            needs: step.needs.iter().map(String::as_str).collect(),
            at: step.at,
        }
    }
}

/// Names must be unique, every need must be there, and none may lead back to itself.
fn check_parts(kind: &str, parts: &[Part<'_>], faults: &mut Faults) {
    let mut known: BTreeMap<&str, u32> = BTreeMap::new();
    for part in parts.iter().filter(|part| !part.name.is_empty()) {
        if let Some(line) = known.insert(part.name, part.at.line) {
            let name = part.name;
            faults.push(fault(
                part.at,
                format!("the {kind} of line {line} is called `{name}` too"),
            ));
        }
    }
    for part in parts {
        for need in part.needs.iter().filter(|need| !known.contains_key(**need)) {
            let names = parts.iter().map(|part| part.name);
            faults.push(Fault {
                at: part.at,
                message: format!(
                    "`{}` needs `{need}`, and no {kind} is called that",
                    part.name
                ),
                hint: similar(need, names, |name| name)
                    .map(|near| format!("did you mean `{near}`?")),
            });
        }
    }
    if let Some((at, circle)) = find_circle(parts) {
        faults.push(fault(
            at,
            format!("{kind}s need each other in a circle: {circle}"),
        ));
    }
}

/// The first circle of needs, as `a → b → a`.
fn find_circle(parts: &[Part<'_>]) -> Option<(Position, String)> {
    let index: BTreeMap<&str, usize> = parts
        .iter()
        .enumerate()
        .map(|(at, part)| (part.name, at))
        .collect();
    // 0: not seen, 1: on the way, 2: done.
    let mut marks = vec![0_u8; parts.len()];
    for start in 0..parts.len() {
        let mut way: Vec<(usize, Vec<&str>)> = Vec::new();
        let mut enter = Some(start);
        loop {
            if let Some(at) = enter.take().filter(|at| marks.get(*at) == Some(&0)) {
                *marks.get_mut(at)? = 1;
                way.push((at, parts.get(at)?.needs.clone()));
            }
            let Some((at, needs)) = way.last_mut() else {
                break;
            };
            let at = *at;
            match needs.pop() {
                None => {
                    *marks.get_mut(at)? = 2;
                    way.pop();
                }
                Some(need) => {
                    let Some(next) = index.get(need).copied() else {
                        continue;
                    };
                    if marks.get(next) == Some(&1) {
                        let from = way.iter().position(|(at, _)| *at == next)?;
                        let names = way.iter().skip(from).filter_map(|(at, _)| parts.get(*at));
                        let mut names: Vec<&str> = names.map(|part| part.name).collect();
                        names.push(need);
                        return Some((parts.get(next)?.at, names.join(" → ")));
                    }
                    enter = Some(next);
                }
            }
        }
    }
    None
}

/// Puts variables into texts, within limits.
struct Filling<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    values_left: usize,
    bytes_left: usize,
    faults: Faults,
}

impl<'a> Filling<'a> {
    fn new(variable: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            variable,
            values_left: MAX_VALUES,
            bytes_left: MAX_FILLED_BYTES,
            faults: Faults::new(),
        }
    }

    /// A copy with variables put into its texts.
    fn fill(&mut self, node: &Node, depth: usize) -> Node {
        if depth == 0 {
            self.stop(
                node.at,
                format!("the document nests more than {MAX_DEPTH} deep"),
            );
        }
        if self.values_left == 0 {
            return Node::map();
        }
        self.values_left -= 1;
        if self.values_left == 0 {
            self.stop(
                node.at,
                format!("the document has more than {MAX_VALUES} values, aliases counted as often as they are used"),
            );
            return Node::map();
        }
        let value = match &node.value {
            Value::Map(map) => {
                let entries = map.iter().map(|entry| {
                    let mut entry = entry.clone();
                    entry.value = self.fill(&entry.value, depth - 1);
                    entry
                });
                Value::Map(Map::from_entries(entries.collect()))
            }
            Value::List(list) => {
                let items = list.iter().map(|item| self.fill(item, depth - 1));
                Value::List(List::from_items(items.collect()))
            }
            Value::Scalar(scalar) if scalar.text.contains("${") => Value::Scalar(Scalar {
                text: Text::from(self.fill_text(&scalar.text, node.at)),
                ..scalar.clone()
            }),
            Value::Scalar(scalar) => Value::Scalar(scalar.clone()),
        };
        Node { value, at: node.at }
    }

    fn fill_text(&mut self, text: &str, at: Position) -> String {
        let known: BTreeMap<String, String> = names(text)
            .filter_map(|name| {
                let value = if OF_BUILDERS.contains(&name) {
                    Some(format!("${{{name}}}"))
                } else {
                    (self.variable)(name)
                };
                Some((name.to_owned(), value?))
            })
            .collect();
        let lookup = |name: &str| known.get(name).map(String::as_str);
        match portolan_envsubst::substitute(text, Unset::Refused, lookup) {
            Ok(filled) if filled.len() <= self.bytes_left => {
                self.bytes_left -= filled.len();
                filled
            }
            Ok(_) => {
                self.stop(
                    at,
                    format!("the document has more than {MAX_FILLED_BYTES} bytes of text with variables put in"),
                );
                String::new()
            }
            Err(error) => {
                self.faults.push(Fault {
                    at,
                    message: format!("cannot put variables into `{text}`: {error}"),
                    hint: Some(
                        "set it in the environment, or give a default: `${NAME:-default}`"
                            .to_owned(),
                    ),
                });
                text.to_owned()
            }
        }
    }

    /// Tells of a limit once, and looks at nothing more.
    fn stop(&mut self, at: Position, message: String) {
        if self.values_left > 0 || self.faults.is_empty() {
            self.faults.push(fault(at, message));
        }
        self.values_left = 0;
    }
}

/// The names of the variables in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.split("${").skip(1).filter_map(move |rest| {
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        rest.get(..end).filter(|name| !name.is_empty())
    })
}
