//! `.Files`: the files of a chart that are neither templates nor read by Helm itself.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use portolan_gotmpl::{Args, Ctx, FuncError, Kind, MapType, Object, Param, Signature, Value};

use super::function_table;
use super::glob::Glob;
use crate::package::{ChartFile, Content};

/// What one file costs in a look over all of them.
const STEPS_PER_FILE: u64 = 4;

/// What a line takes beside its bytes.
const BYTES_PER_TEXT: usize = 48;

/// Files by path, with the methods templates call.
#[derive(Debug, Default)]
pub(crate) struct Files {
    files: BTreeMap<String, Content>,
}

impl Files {
    pub(crate) fn new(files: &[ChartFile]) -> Self {
        let files = files
            .iter()
            .map(|file| (file.name.clone(), file.content.clone()));
        Self {
            files: files.collect(),
        }
    }

    fn glob(&self, pattern: &str) -> Self {
        // A pattern that cannot be read matches everything.
        let glob = Glob::parse(pattern);
        let fits = |name: &str| glob.as_ref().is_none_or(|glob| glob.matches(name));
        let files = self.files.iter().filter(|(name, _)| fits(name));
        Self {
            files: files
                .map(|(name, content)| (name.clone(), content.clone()))
                .collect(),
        }
    }

    fn bytes(&self) -> usize {
        self.files.values().map(|content| content.len()).sum()
    }

    fn lines(&self, name: &str) -> Result<Value, FuncError> {
        let Some(content) = self.files.get(name) else {
            return Ok(Value::strings::<&str>([]));
        };
        if content.is_empty() {
            return Err(FuncError::new("runtime error: index out of range [-1]"));
        }
        let text = String::from_utf8_lossy(content);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        Ok(Value::strings(text.split('\n')))
    }

    /// The files by their last name, as YAML for the data of a `ConfigMap` or Secret.
    fn as_yaml(
        &self,
        ctx: &mut Ctx<'_>,
        convert: impl Fn(&[u8]) -> Value,
    ) -> Result<Value, FuncError> {
        ctx.check_text(self.bytes())?;
        let mut entries = BTreeMap::new();
        for (name, content) in &self.files {
            let base = name.rsplit('/').next().unwrap_or(name);
            entries.insert(base.into(), convert(content));
        }
        let entries = Value::map(entries);
        ctx.weigh(&entries)?;
        let Some(to_yaml) = function_table().get("toYaml").copied() else {
            return Ok(Value::str(""));
        };
        (to_yaml.call)(ctx, Args::new(&[entries]))
    }
}

const ONE_TEXT: Signature = Signature::new(&[Param::Str]);

impl Object for Files {
    fn type_name(&self) -> Cow<'static, str> {
        "engine.files".into()
    }

    fn kind(&self) -> Kind {
        Kind::Map
    }

    /// A file that is not there is an empty one.
    fn field(&self, name: &str) -> Option<Value> {
        let content = self.files.get(name).map(|content| &**content);
        Some(Value::bytes(content.unwrap_or_default()))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Get" | "GetBytes" | "Glob" | "Lines" => Some(ONE_TEXT),
            "AsConfig" | "AsSecrets" => Some(Signature::NONE),
            _ => None,
        }
    }

    fn call(&self, ctx: &mut Ctx<'_>, name: &str, args: Args<'_>) -> Result<Value, FuncError> {
        let argument = args.str(0);
        let content = || self.files.get(&*argument).map(|c| &**c).unwrap_or_default();
        if name == "Glob" {
            // The pattern is held against every file's name.
            ctx.step(self.files.len() as u64 * STEPS_PER_FILE)?;
        }
        match name {
            "Get" => Ok(Value::str_from_bytes(content())),
            "GetBytes" => Ok(Value::bytes(content())),
            "Glob" => Ok(Value::object(self.glob(&argument))),
            "Lines" => {
                let lines = content().iter().filter(|byte| **byte == b'\n').count();
                ctx.check_items(lines + 1)?;
                ctx.allocate((lines + 1).saturating_mul(BYTES_PER_TEXT))?;
                self.lines(&argument)
            }
            "AsConfig" => self.as_yaml(ctx, Value::str_from_bytes),
            "AsSecrets" => self.as_yaml(ctx, |content| Value::str(base64(content))),
            _ => Err(FuncError::new(format!("no method {name}"))),
        }
    }

    fn print(&self, out: &mut String) {
        out.push_str("map[");
        for (index, (name, content)) in self.files.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            let bytes: Vec<_> = content.iter().map(u8::to_string).collect();
            // Writing to a string cannot fail.
            let _ = write!(out, "{space}{name}:[{}]", bytes.join(" "));
        }
        out.push(']');
    }

    fn truth(&self) -> bool {
        !self.files.is_empty()
    }

    fn data(&self) -> Option<Value> {
        let entries = self
            .files
            .iter()
            .map(|(name, content)| (name.as_str().into(), Value::bytes(content)));
        Some(Value::typed_map(MapType::Bytes, entries.collect()))
    }
}

fn base64(content: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(content)
}
