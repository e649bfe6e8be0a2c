//! What Helm gives to the templates of a chart `c`, made without Helm's chart machinery.

use std::borrow::Cow;
use std::rc::Rc;

use portolan_gotmpl::{Args, Ctx, FuncError, Kind, Map, MapType, Object, Param, Signature, Value};

const VALUES: &str = "chartutil.Values";

/// The dot of a template, without `.Template`.
pub(crate) fn context(values: Value) -> Rc<Map> {
    let values = match values {
        Value::Map(map) => map,
        _ => Rc::new(Map::new(MapType::Any, [].into())),
    };
    let release = Value::map(
        [
            ("Name".into(), Value::str("rel")),
            ("Namespace".into(), Value::str("default")),
            ("Revision".into(), Value::int(1)),
            ("Service".into(), Value::str("Helm")),
            ("IsInstall".into(), Value::Bool(true)),
            ("IsUpgrade".into(), Value::Bool(false)),
        ]
        .into(),
    );
    let entries = [
        (
            "Values".into(),
            Value::Map(Rc::new(Map::named(VALUES, values))),
        ),
        ("Release".into(), release),
        ("Chart".into(), Value::object(Chart)),
        ("Capabilities".into(), Value::object(Capabilities)),
        ("Files".into(), Value::object(Files)),
        ("Subcharts".into(), Value::map([].into())),
    ];
    Rc::new(Map::new(MapType::Values(VALUES), entries.into()))
}

/// Sets `.Template` for a file.
pub(crate) fn set_template(context: &Map, name: &str, base: &str) {
    let entries = [
        ("Name".into(), Value::str(name)),
        ("BasePath".into(), Value::str(base)),
    ];
    let template = Value::typed_map(MapType::Values(VALUES), entries.into());
    context.insert("Template", template);
}

struct Chart;

impl Object for Chart {
    fn type_name(&self) -> Cow<'static, str> {
        "struct { chart.Metadata; IsRoot bool }".into()
    }

    fn field(&self, name: &str) -> Option<Value> {
        Some(match name {
            "IsRoot" => Value::Bool(true),
            "Name" => Value::str("c"),
            "Version" => Value::str("0.1.0"),
            "APIVersion" => Value::str("v2"),
            "AppVersion" | "Description" | "Home" | "Icon" | "KubeVersion" | "Type"
            | "Condition" | "Tags" => Value::str(""),
            "Deprecated" => Value::Bool(false),
            "Keywords" | "Sources" => Value::strings::<&str>([]),
            "Maintainers" | "Dependencies" => Value::list(Vec::new()),
            "Annotations" => Value::typed_map(MapType::Str, [].into()),
            _ => return None,
        })
    }

    fn print(&self, out: &mut String) {
        out.push_str("{{c  [] 0.1.0  [] []  v2    false map[]  [] } true}");
    }

    fn truth(&self) -> bool {
        true
    }

    fn data(&self) -> Option<Value> {
        let entries = [
            ("apiVersion".into(), Value::str("v2")),
            ("name".into(), Value::str("c")),
            ("version".into(), Value::str("0.1.0")),
        ];
        Some(Value::map(entries.into()))
    }
}

struct Capabilities;

impl Object for Capabilities {
    fn type_name(&self) -> Cow<'static, str> {
        "*chartutil.Capabilities".into()
    }

    fn kind(&self) -> Kind {
        Kind::Ptr
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "KubeVersion" => Some(Value::object(KubeVersion)),
            "HelmVersion" => Some(Value::map(
                [("Version".into(), Value::str("v3.17.3"))].into(),
            )),
            "APIVersions" => Some(Value::object(VersionSet)),
            _ => None,
        }
    }

    fn print(&self, out: &mut String) {
        out.push_str("capabilities");
    }
}

struct KubeVersion;

impl Object for KubeVersion {
    fn type_name(&self) -> Cow<'static, str> {
        "chartutil.KubeVersion".into()
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Version" => Some(Value::str("v1.32.0")),
            "Major" => Some(Value::str("1")),
            "Minor" => Some(Value::str("32")),
            _ => None,
        }
    }

    fn method(&self, name: &str) -> Option<Signature> {
        matches!(name, "GitVersion" | "String").then_some(Signature::NONE)
    }

    fn call(&self, _: &mut Ctx<'_>, _: &str, _: Args<'_>) -> Result<Value, FuncError> {
        Ok(Value::str("v1.32.0"))
    }

    fn print(&self, out: &mut String) {
        out.push_str("v1.32.0");
    }

    fn data(&self) -> Option<Value> {
        let entries = [
            ("Version".into(), Value::str("v1.32.0")),
            ("Major".into(), Value::str("1")),
            ("Minor".into(), Value::str("32")),
        ];
        Some(Value::map(entries.into()))
    }
}

struct VersionSet;

const API_VERSIONS: [&str; 4] = ["v1", "apps/v1", "batch/v1", "networking.k8s.io/v1"];

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
        Ok(Value::Bool(API_VERSIONS.contains(&&*args.str(0))))
    }

    fn print(&self, out: &mut String) {
        out.push_str("[v1]");
    }

    fn data(&self) -> Option<Value> {
        Some(Value::strings(API_VERSIONS))
    }
}

struct Files;

impl Object for Files {
    fn type_name(&self) -> Cow<'static, str> {
        "engine.files".into()
    }

    fn kind(&self) -> Kind {
        Kind::Map
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Get" | "GetBytes" | "Glob" | "Lines" => Some(Signature::new(&[Param::Str])),
            "AsConfig" | "AsSecrets" => Some(Signature::NONE),
            _ => None,
        }
    }

    fn call(&self, _: &mut Ctx<'_>, name: &str, _: Args<'_>) -> Result<Value, FuncError> {
        Ok(match name {
            "GetBytes" => Value::bytes(b""),
            "Glob" => Value::object(Self),
            "Lines" => Value::strings::<&str>([]),
            _ => Value::str(""),
        })
    }

    fn print(&self, out: &mut String) {
        out.push_str("map[]");
    }

    fn data(&self) -> Option<Value> {
        Some(Value::typed_map(MapType::Bytes, [].into()))
    }
}
