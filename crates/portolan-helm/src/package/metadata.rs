//! `Chart.yaml`: a chart's name, its dependencies and its other metadata.

use portolan_yaml::Node;

use super::decode::Fields;
use crate::values::Tree;

/// The content of `Chart.yaml`, with the dependencies of a v1 chart's `requirements.yaml`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata {
    /// The chart's name.
    pub name: String,
    /// A page about the chart.
    pub home: String,
    /// Where its sources are.
    pub sources: Vec<String>,
    /// The chart's version.
    pub version: String,
    /// One sentence about it.
    pub description: String,
    /// Words to find it by.
    pub keywords: Vec<String>,
    /// Who looks after it.
    pub maintainers: Vec<Maintainer>,
    /// The address of a picture.
    pub icon: String,
    /// `v1` or `v2`.
    pub api_version: String,
    /// A field of v1 charts without effect.
    pub condition: String,
    /// A field of v1 charts without effect.
    pub tags: String,
    /// The version of what the chart installs.
    pub app_version: String,
    /// Whether its authors advise against it.
    pub deprecated: bool,
    /// Notes for other programs, in the order of the file.
    pub annotations: Vec<(String, String)>,
    /// The Kubernetes versions it works with.
    pub kube_version: String,
    /// The charts it needs; `None` where the field is absent, which also leaves vendored charts unchecked.
    pub dependencies: Option<Vec<Dependency>>,
    /// `application`, `library` or empty.
    pub chart_type: String,
}

/// A person or group that looks after a chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Maintainer {
    /// The name.
    pub name: String,
    /// The e-mail address.
    pub email: String,
    /// A page.
    pub url: String,
}

/// A chart that another chart needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dependency {
    /// The chart's name.
    pub name: String,
    /// The version, or a range of them.
    pub version: String,
    /// Where it comes from.
    pub repository: String,
    /// Paths into the values that enable or disable it, separated by commas.
    pub condition: String,
    /// Names under `tags` in the values that enable or disable it.
    pub tags: Vec<String>,
    /// Written by some tools, without effect: conditions and tags decide.
    pub enabled: bool,
    /// Values of the dependency to copy into the parent.
    pub import_values: Vec<ImportValues>,
    /// The name the dependency gets here.
    pub alias: String,
}

/// One item of `import-values`.
#[derive(Debug, Clone, PartialEq)]
pub enum ImportValues {
    /// A key below the child's `exports`, copied to the parent's top.
    Export(String),
    /// A table of the child copied to a path of the parent.
    Path {
        /// The path in the child's values.
        child: String,
        /// The path in the parent's values, `.` for the top.
        parent: String,
    },
    /// Anything else, which Helm does not look at.
    Other(Tree),
}

/// `Chart.lock` (or `requirements.lock`): the versions that were chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lock {
    /// When it was written.
    pub generated: String,
    /// The digest of the dependencies it was made for.
    pub digest: String,
    /// The chosen versions.
    pub dependencies: Vec<Dependency>,
}

// === impl Metadata ===

impl Metadata {
    /// Fills the fields that a document names; others keep their content.
    pub(crate) fn fill(&mut self, node: &Node) -> Result<(), String> {
        let fields = Fields::of(node, "chart.Metadata")?;
        let set = |target: &mut String, key: &str| -> Result<(), String> {
            if fields.node(key).is_some() {
                *target = fields.text(key)?;
            }
            Ok(())
        };
        set(&mut self.name, "name")?;
        set(&mut self.home, "home")?;
        set(&mut self.version, "version")?;
        set(&mut self.description, "description")?;
        set(&mut self.icon, "icon")?;
        set(&mut self.api_version, "apiVersion")?;
        set(&mut self.condition, "condition")?;
        set(&mut self.tags, "tags")?;
        set(&mut self.app_version, "appVersion")?;
        set(&mut self.kube_version, "kubeVersion")?;
        set(&mut self.chart_type, "type")?;
        if fields.node("sources").is_some() {
            self.sources = fields.texts("sources")?;
        }
        if fields.node("keywords").is_some() {
            self.keywords = fields.texts("keywords")?;
        }
        if fields.node("deprecated").is_some() {
            self.deprecated = fields.bool("deprecated")?;
        }
        if fields.node("annotations").is_some() {
            self.annotations = fields.text_map("annotations")?;
        }
        if fields.node("maintainers").is_some() {
            self.maintainers = maintainers(&fields)?;
        }
        if fields.node("dependencies").is_some() {
            self.dependencies = Some(dependencies(&fields, "chart.Dependency")?);
        }
        Ok(())
    }

    /// Checks what Helm checks when it loads a chart, and removes characters that cannot be printed.
    pub(crate) fn validate(&mut self) -> Result<(), String> {
        for text in [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.condition,
            &mut self.tags,
            &mut self.app_version,
            &mut self.kube_version,
        ] {
            sanitize(text);
        }
        self.sources.iter_mut().for_each(sanitize);
        self.keywords.iter_mut().for_each(sanitize);
        if self.api_version.is_empty() {
            return Err("chart.metadata.apiVersion is required".to_owned());
        }
        if self.name.is_empty() {
            return Err("chart.metadata.name is required".to_owned());
        }
        if self.name.contains('/') {
            return Err(format!("chart.metadata.name {:?} is invalid", self.name));
        }
        if self.version.is_empty() {
            return Err("chart.metadata.version is required".to_owned());
        }
        if portolan_semver::Version::parse(&self.version).is_err() {
            return Err(format!(
                "chart.metadata.version {:?} is invalid",
                self.version
            ));
        }
        if !matches!(self.chart_type.as_str(), "" | "application" | "library") {
            return Err("chart.metadata.type must be application or library".to_owned());
        }
        for maintainer in &mut self.maintainers {
            sanitize(&mut maintainer.name);
            sanitize(&mut maintainer.email);
            sanitize(&mut maintainer.url);
        }
        self.validate_dependencies()
    }

    fn validate_dependencies(&mut self) -> Result<(), String> {
        let mut seen: Vec<&str> = Vec::new();
        for dependency in self.dependencies.iter_mut().flatten() {
            dependency.validate()?;
            let key = dependency.key();
            if seen.contains(&key) {
                return Err(format!(
                    "more than one dependency with name or alias {key:?}"
                ));
            }
            seen.push(key);
        }
        Ok(())
    }

    /// Whether the chart only lends its partial templates to others.
    pub fn is_library(&self) -> bool {
        self.chart_type.eq_ignore_ascii_case("library")
    }
}

fn maintainers(fields: &Fields<'_>) -> Result<Vec<Maintainer>, String> {
    let items = fields.structs("maintainers", "chart.Maintainer")?;
    items
        .into_iter()
        .map(|item| {
            let item = item.ok_or("maintainers must not contain empty or null nodes")?;
            Ok(Maintainer {
                name: item.text("name")?,
                email: item.text("email")?,
                url: item.text("url")?,
            })
        })
        .collect()
}

fn dependencies(fields: &Fields<'_>, type_name: &'static str) -> Result<Vec<Dependency>, String> {
    let items = fields.structs("dependencies", type_name)?;
    items
        .into_iter()
        .map(|item| match item {
            Some(item) => Dependency::read(&item),
            None => Err("dependencies must not contain empty or null nodes".to_owned()),
        })
        .collect()
}

// === impl Dependency ===

impl Dependency {
    fn read(fields: &Fields<'_>) -> Result<Self, String> {
        let imports = fields.list("import-values", "interface {}")?;
        Ok(Self {
            name: fields.text("name")?,
            version: fields.text("version")?,
            repository: fields.text("repository")?,
            condition: fields.text("condition")?,
            tags: fields.texts("tags")?,
            enabled: fields.bool("enabled")?,
            import_values: imports.into_iter().map(ImportValues::read).collect(),
            alias: fields.text("alias")?,
        })
    }

    /// The name it goes by in the parent: the alias where there is one.
    pub fn key(&self) -> &str {
        if self.alias.is_empty() {
            &self.name
        } else {
            &self.alias
        }
    }

    fn validate(&mut self) -> Result<(), String> {
        sanitize(&mut self.name);
        sanitize(&mut self.version);
        sanitize(&mut self.repository);
        sanitize(&mut self.condition);
        self.tags.iter_mut().for_each(sanitize);
        let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if self.alias.bytes().all(legal) {
            Ok(())
        } else {
            Err(format!(
                "dependency {:?} has disallowed characters in the alias",
                self.name
            ))
        }
    }
}

// === impl ImportValues ===

impl ImportValues {
    fn read(node: &Node) -> Self {
        if let Some(key) = node.as_str() {
            return Self::Export(key.to_owned());
        }
        let path = |key| node.get(key).and_then(Node::as_str).map(str::to_owned);
        match (path("child"), path("parent")) {
            (Some(child), Some(parent)) => Self::Path { child, parent },
            _ => Self::Other(Tree::from_node(node)),
        }
    }
}

// === impl Lock ===

impl Lock {
    pub(crate) fn read(node: &Node) -> Result<Self, String> {
        let fields = Fields::of(node, "chart.Lock")?;
        Ok(Self {
            generated: fields.text("generated")?,
            digest: fields.text("digest")?,
            dependencies: dependencies(&fields, "chart.Dependency")?,
        })
    }
}

/// Turns every kind of white space into a space and drops what cannot be printed.
fn sanitize(text: &mut String) {
    let fine = |c: char| c == ' ' || !(c.is_whitespace() || c.is_control());
    if !text.chars().all(fine) {
        let spaced = text
            .chars()
            .map(|c| if c.is_whitespace() { ' ' } else { c });
        *text = spaced.filter(|c| !c.is_control()).collect();
    }
}
