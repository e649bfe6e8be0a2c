//! What a template sees as `.`: the chart, its values, the release and the cluster.
//!
//! Every chart has one context map, which all its templates share and which its parent's `.Subcharts` refers to. What
//! a template sets in it is visible to later templates.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use portolan_gotmpl::{
    Args, Ctx, ElementType, FuncError, Kind, Map, MapType, Object, Param, Signature, Text, Value,
};

use super::files::Files;
use crate::capabilities::Capabilities;
use crate::dependency::Plan;
use crate::package::{Dependency, ImportValues, Maintainer, Metadata};
use crate::profile::Profile;
use crate::release::Release;
use crate::render::TemplateInput;
use crate::reported_version::ReportedVersion;

/// Makes the contexts of a chart and all charts below it, parents first.
pub(crate) fn scopes(plan: &Plan, values: &Rc<Map>, input: &TemplateInput) -> Vec<Rc<Map>> {
    let shared = Shared {
        release: release_map(&input.release),
        capabilities: Value::object(CapabilitiesObject {
            capabilities: Arc::clone(&input.capabilities),
            profile: input.profile,
        }),
        profile: input.profile,
    };
    let mut scopes = Vec::new();
    shared.chart(plan, values, true, &mut scopes);
    scopes
}

struct Shared {
    release: Value,
    capabilities: Value,
    profile: Profile,
}

impl Shared {
    fn chart(
        &self,
        plan: &Plan,
        values: &Rc<Map>,
        is_root: bool,
        scopes: &mut Vec<Rc<Map>>,
    ) -> Rc<Map> {
        let context = Rc::new(Map::new(MapType::Any, BTreeMap::new()));
        let subcharts = Rc::new(Map::new(MapType::Any, BTreeMap::new()));
        context.insert("Chart", chart_value(plan, is_root, self.profile));
        context.insert("Files", Value::object(Files::new(&plan.package().files)));
        context.insert("Release", self.release.clone());
        context.insert("Capabilities", self.capabilities.clone());
        context.insert("Values", named_values(values));
        context.insert("Subcharts", Value::Map(Rc::clone(&subcharts)));
        scopes.push(Rc::clone(&context));
        for dependency in plan.dependencies() {
            // The subchart works on its parent's own table: what one of them sets, the other sees.
            let below = match values.get(dependency.name()) {
                Some(Value::Map(table)) => table,
                _ => Rc::new(Map::new(MapType::Any, BTreeMap::new())),
            };
            let below = self.chart(dependency, &below, false, scopes);
            subcharts.insert(dependency.name(), Value::Map(below));
        }
        context
    }
}

/// A table under the name of Helm's type for values, which also is the type of a template's dot.
pub(crate) fn named_values(table: &Rc<Map>) -> Value {
    Value::Map(Rc::new(Map::named(VALUES_TYPE, Rc::clone(table))))
}

const VALUES_TYPE: &str = "chartutil.Values";

fn release_map(release: &Release) -> Value {
    let map = Map::new(MapType::Any, BTreeMap::new());
    map.insert("Name", Value::str(release.name.as_str()));
    map.insert("Namespace", Value::str(release.namespace.as_str()));
    map.insert("IsUpgrade", Value::Bool(release.is_upgrade));
    map.insert("IsInstall", Value::Bool(!release.is_upgrade));
    map.insert("Revision", Value::int(release.revision));
    map.insert("Service", Value::str("Helm"));
    Value::Map(Rc::new(map))
}

/// `.Template` while a template runs.
pub(crate) fn template_value(name: &str, base_path: &str) -> Value {
    let entries = [
        ("BasePath".into(), Value::str(base_path)),
        ("Name".into(), Value::str(name)),
    ];
    named_values(&Rc::new(Map::new(MapType::Any, entries.into())))
}

// === Structs ===

/// A Go struct as templates see it: fields in declaration order, each with its JSON name.
#[derive(Debug, Clone)]
struct Struct {
    type_name: &'static str,
    fields: Vec<Field>,
}

#[derive(Debug, Clone)]
struct Field {
    name: &'static str,
    json: &'static str,
    omit_empty: bool,
    value: Value,
}

impl Struct {
    fn new(type_name: &'static str) -> Self {
        Self {
            type_name,
            fields: Vec::new(),
        }
    }

    /// A field that JSON leaves out when it is empty.
    fn optional(mut self, name: &'static str, json: &'static str, value: Value) -> Self {
        self.fields.push(Field {
            name,
            json,
            omit_empty: true,
            value,
        });
        self
    }

    fn always(mut self, name: &'static str, json: &'static str, value: Value) -> Self {
        self.fields.push(Field {
            name,
            json,
            omit_empty: false,
            value,
        });
        self
    }

    /// The struct inside the struct that a chart is: all fields but `IsRoot`.
    fn metadata(&self) -> Self {
        let mut metadata = self.clone();
        metadata.type_name = "chart.Metadata";
        metadata.fields.pop();
        metadata
    }
}

impl Object for Struct {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.into()
    }

    fn kind(&self) -> Kind {
        if self.type_name.starts_with('*') {
            Kind::Ptr
        } else {
            Kind::Struct
        }
    }

    fn field(&self, name: &str) -> Option<Value> {
        if let Some(field) = self.fields.iter().find(|field| field.name == name) {
            return Some(field.value.clone());
        }
        // The chart's metadata are a struct inside the struct.
        let is_embedded = name == "Metadata" && self.type_name == CHART_TYPE;
        is_embedded.then(|| Value::object(self.metadata()))
    }

    fn truth(&self) -> bool {
        true
    }

    fn fields(&self) -> Option<Vec<(&'static str, Value)>> {
        if self.type_name == CHART_TYPE {
            let metadata = ("Metadata", Value::object(self.metadata()));
            return Some(vec![metadata, ("IsRoot", self.field("IsRoot")?)]);
        }
        let fields = self.fields.iter();
        Some(
            fields
                .map(|field| (field.name, field.value.clone()))
                .collect(),
        )
    }

    fn embedded(&self) -> Option<&'static str> {
        (self.type_name == CHART_TYPE).then_some("Metadata")
    }

    fn json_fields(&self) -> Option<Vec<(Text, Value)>> {
        let shown = self
            .fields
            .iter()
            .filter(|field| !field.omit_empty || field.value.truth())
            .map(|field| (field.json.into(), field.value.clone()));
        Some(shown.collect())
    }
}

const CHART_TYPE: &str = "struct { chart.Metadata; IsRoot bool }";

fn chart_value(plan: &Plan, is_root: bool, profile: Profile) -> Value {
    let metadata = &plan.package().metadata;
    let text = |text: &str| Value::str(text);
    let chart = Struct::new(CHART_TYPE)
        .optional("Name", "name", text(plan.name()))
        .optional("Home", "home", text(&metadata.home))
        .optional("Sources", "sources", texts(&metadata.sources))
        .optional("Version", "version", text(&metadata.version))
        .optional("Description", "description", text(&metadata.description))
        .optional("Keywords", "keywords", texts(&metadata.keywords))
        .optional("Maintainers", "maintainers", maintainers(metadata))
        .optional("Icon", "icon", text(&metadata.icon))
        .optional("APIVersion", "apiVersion", text(&metadata.api_version))
        .optional("Condition", "condition", text(&metadata.condition))
        .optional("Tags", "tags", text(&metadata.tags))
        .optional("AppVersion", "appVersion", text(&metadata.app_version))
        .optional("Deprecated", "deprecated", Value::Bool(metadata.deprecated))
        .optional("Annotations", "annotations", annotations(metadata))
        .optional("KubeVersion", "kubeVersion", text(&metadata.kube_version))
        .optional("Dependencies", "dependencies", dependencies(plan.listed()))
        .optional("Type", "type", text(&metadata.chart_type))
        .always("IsRoot", "IsRoot", Value::Bool(is_root));
    match profile {
        Profile::Helm3 => Value::object(chart),
        Profile::Helm4 => as_map(chart),
    }
}

/// Helm 4 hands charts to templates as a map from field names to values.
fn as_map(chart: Struct) -> Value {
    let fields = chart.fields.into_iter();
    Value::map(
        fields
            .map(|field| (field.name.into(), field.value))
            .collect(),
    )
}

/// A list that `Chart.yaml` does not have is one that was never made: `null` in YAML.
fn texts(texts: &[String]) -> Value {
    if texts.is_empty() {
        return Value::nil_list(ElementType::Str);
    }
    Value::strings(texts.iter().map(String::as_str))
}

fn annotations(metadata: &Metadata) -> Value {
    if metadata.annotations.is_empty() {
        return Value::nil_map(MapType::Str);
    }
    let entries = metadata
        .annotations
        .iter()
        .map(|(key, value)| (key.as_str().into(), Value::str(value.as_str())));
    Value::typed_map(MapType::Str, entries.collect())
}

fn maintainers(metadata: &Metadata) -> Value {
    let item = |maintainer: &Maintainer| {
        Value::object(
            Struct::new("*chart.Maintainer")
                .optional("Name", "name", Value::str(maintainer.name.as_str()))
                .optional("Email", "email", Value::str(maintainer.email.as_str()))
                .optional("URL", "url", Value::str(maintainer.url.as_str())),
        )
    };
    let items = metadata.maintainers.iter().map(item).collect();
    objects("[]*chart.Maintainer", items)
}

fn dependencies(listed: &[Dependency]) -> Value {
    let text = |text: &str| Value::str(text);
    let item = |dependency: &Dependency| {
        let imports = dependency.import_values.iter().map(import_value).collect();
        Value::object(
            Struct::new("*chart.Dependency")
                .always("Name", "name", text(&dependency.name))
                .optional("Version", "version", text(&dependency.version))
                .always("Repository", "repository", text(&dependency.repository))
                .optional("Condition", "condition", text(&dependency.condition))
                .optional("Tags", "tags", texts(&dependency.tags))
                .optional("Enabled", "enabled", Value::Bool(dependency.enabled))
                .optional("ImportValues", "import-values", Value::list(imports))
                .optional("Alias", "alias", text(&dependency.alias)),
        )
    };
    let items = listed.iter().map(item).collect();
    objects("[]*chart.Dependency", items)
}

fn objects(list_type: &'static str, items: Vec<Value>) -> Value {
    let element = ElementType::Objects(list_type);
    if items.is_empty() {
        return Value::nil_list(element);
    }
    Value::typed_list(element, items)
}

/// Helm writes every import in its long form once it has handled it.
fn import_value(import: &ImportValues) -> Value {
    let pair = |child: &str, parent: &str| {
        let entries = [
            ("child".into(), Value::str(child)),
            ("parent".into(), Value::str(parent)),
        ];
        Value::typed_map(MapType::Str, entries.into())
    };
    match import {
        ImportValues::Export(key) => pair(&format!("exports.{key}"), "."),
        ImportValues::Path { child, parent } => pair(child, parent),
        ImportValues::Other(tree) => tree.thaw(),
    }
}

// === Capabilities ===

/// `.Capabilities`
struct CapabilitiesObject {
    capabilities: Arc<Capabilities>,
    profile: Profile,
}

impl Object for CapabilitiesObject {
    fn type_name(&self) -> Cow<'static, str> {
        "*chartutil.Capabilities".into()
    }

    fn kind(&self) -> Kind {
        Kind::Ptr
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "KubeVersion" => Some(Value::object(KubeVersionObject {
                version: self.capabilities.kube_version.clone(),
                profile: self.profile,
            })),
            "APIVersions" => Some(Value::object(VersionSet(Arc::clone(&self.capabilities)))),
            "HelmVersion" => Some(helm_version(self.profile)),
            _ => None,
        }
    }

    fn truth(&self) -> bool {
        true
    }

    fn fields(&self) -> Option<Vec<(&'static str, Value)>> {
        let names = ["KubeVersion", "APIVersions", "HelmVersion"];
        Some(named_fields(self, &names))
    }
}

fn helm_version(profile: Profile) -> Value {
    let (version, commit, go) = match profile {
        Profile::Helm3 => (
            "v3.17.3",
            "e4da49785aa6e6ee2b86efd5dd9e43400318262b",
            "go1.23.7",
        ),
        Profile::Helm4 => ("v4.2.4", "", "go1.26.0"),
    };
    let build = Struct::new("version.BuildInfo")
        .optional("Version", "version", Value::str(version))
        .optional("GitCommit", "git_commit", Value::str(commit))
        .optional("GitTreeState", "git_tree_state", Value::str("clean"))
        .optional("GoVersion", "go_version", Value::str(go));
    Value::object(match profile {
        Profile::Helm3 => build,
        Profile::Helm4 => build.optional(
            "KubeClientVersion",
            "kube_client_version",
            Value::str("v1.36"),
        ),
    })
}

/// `.Capabilities.KubeVersion`
struct KubeVersionObject {
    version: ReportedVersion,
    profile: Profile,
}

impl KubeVersionObject {
    fn shown(&self) -> String {
        match self.profile {
            Profile::Helm3 => self.version.to_string(),
            Profile::Helm4 => self.version.without_suffix().to_string(),
        }
    }
}

impl Object for KubeVersionObject {
    fn type_name(&self) -> Cow<'static, str> {
        "chartutil.KubeVersion".into()
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Version" => Some(Value::str(self.version.to_string())),
            "Major" => Some(Value::str(self.version.release().major.to_string())),
            "Minor" => Some(Value::str(self.version.release().minor.to_string())),
            _ => None,
        }
    }

    fn method(&self, name: &str) -> Option<Signature> {
        matches!(name, "GitVersion" | "String").then_some(Signature::NONE)
    }

    fn call(&self, _: &mut Ctx<'_>, name: &str, _: Args<'_>) -> Result<Value, FuncError> {
        Ok(Value::str(match name {
            "String" => self.shown(),
            _ => self.version.to_string(),
        }))
    }

    /// The type's `String` belongs to pointers, which a bare action takes and `printf` does not.
    fn print(&self, out: &mut String) {
        out.push_str(&self.shown());
    }

    fn truth(&self) -> bool {
        true
    }

    fn fields(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(named_fields(self, &["Version", "Major", "Minor"]))
    }
}

fn named_fields(object: &dyn Object, names: &[&'static str]) -> Vec<(&'static str, Value)> {
    let fields = names.iter();
    fields
        .filter_map(|name| Some((*name, object.field(name)?)))
        .collect()
}

/// `.Capabilities.APIVersions`
struct VersionSet(Arc<Capabilities>);

impl Object for VersionSet {
    fn type_name(&self) -> Cow<'static, str> {
        "chartutil.VersionSet".into()
    }

    fn kind(&self) -> Kind {
        Kind::Slice
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "Has").then_some(Signature::new(&[Param::Str]))
    }

    fn call(&self, _: &mut Ctx<'_>, _: &str, args: Args<'_>) -> Result<Value, FuncError> {
        let wanted = args.str(0);
        let has = self.0.api_versions.iter().any(|version| *version == wanted);
        Ok(Value::Bool(has))
    }

    fn print(&self, out: &mut String) {
        out.push('[');
        out.push_str(&self.0.api_versions.join(" "));
        out.push(']');
    }

    fn truth(&self) -> bool {
        !self.0.api_versions.is_empty()
    }

    fn data(&self) -> Option<Value> {
        Some(texts(&self.0.api_versions))
    }
}
