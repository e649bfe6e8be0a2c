//! Host objects: values that Go code passes to a template and that are neither plain data nor functions.

use std::any::Any;
use std::borrow::Cow;

use crate::function::{Args, Ctx, FuncError, Param};
use crate::value::Value;
use portolan_yaml::Text;

/// Go's kinds of values, as `reflect` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Go's")]
pub enum Kind {
    Invalid,
    Bool,
    Int,
    Int32,
    Int64,
    Uint,
    Uint8,
    Uint32,
    Uint64,
    Float32,
    Float64,
    Complex128,
    String,
    Slice,
    Map,
    Ptr,
    Struct,
    Func,
}

/// A Go value with fields or methods: `.Files`, `.Capabilities`, a time, a version.
pub trait Object: Any {
    /// Its Go type as `%T` prints it.
    fn type_name(&self) -> Cow<'static, str>;

    /// Its kind.
    fn kind(&self) -> Kind {
        Kind::Struct
    }

    /// The value of an exported field.
    fn field(&self, name: &str) -> Option<Value> {
        let _ = name;
        None
    }

    /// The parameters of a method; none when there is no such method.
    fn method(&self, name: &str) -> Option<Signature> {
        let _ = name;
        None
    }

    /// Calls a method that [`Object::method`] knows; the arguments fit its signature.
    fn call(&self, ctx: &mut Ctx<'_>, name: &str, args: Args<'_>) -> Result<Value, FuncError> {
        let _ = (ctx, args);
        Err(FuncError::new(format!("no method {name}")))
    }

    /// What a bare action prints. A struct prints its fields, also under `%v`.
    fn print(&self, out: &mut String) {
        let fields = self.fields().unwrap_or_default();
        crate::fmt::write_struct(out, &self.type_name(), &fields);
    }

    /// Whether `if` takes it; Go takes every struct.
    fn truth(&self) -> bool {
        self.data().is_none_or(|data| data.truth())
    }

    /// The plain data behind a named slice, map or struct: what `range`, `len`, `index` and `toYaml` see.
    fn data(&self) -> Option<Value> {
        let fields = self.json_fields()?;
        Some(Value::map(fields.into_iter().collect()))
    }

    /// The exported fields of a struct under their Go names, in the order they are declared in.
    fn fields(&self) -> Option<Vec<(&'static str, Value)>> {
        None
    }

    /// The field that is a struct inside the struct, so that its fields count as the outer one's.
    fn embedded(&self) -> Option<&'static str> {
        None
    }

    /// The fields as JSON has them, which knows other names and leaves fields out.
    fn json_fields(&self) -> Option<Vec<(Text, Value)>> {
        let fields = self.fields()?.into_iter();
        Some(fields.map(|(name, value)| (name.into(), value)).collect())
    }
}

/// What a function takes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Signature {
    /// The fixed parameters.
    pub params: &'static [Param],
    /// The type of the remaining arguments, when there may be more.
    pub variadic: Option<Param>,
}

impl Signature {
    /// A function without parameters.
    pub const NONE: Self = Self::new(&[]);

    /// A function of fixed parameters.
    pub const fn new(params: &'static [Param]) -> Self {
        Self {
            params,
            variadic: None,
        }
    }

    /// A function that takes any number of further arguments of a type.
    pub const fn variadic(params: &'static [Param], rest: Param) -> Self {
        Self {
            params,
            variadic: Some(rest),
        }
    }
}

impl Signature {
    /// The type of an argument by its index.
    pub(crate) fn param(&self, index: usize) -> Param {
        self.params
            .get(index)
            .copied()
            .or(self.variadic)
            .unwrap_or(Param::Any)
    }

    /// Go's words when the number of arguments is wrong; `piped` of them came through a pipeline.
    pub(crate) fn check_count(&self, name: &str, count: usize, piped: bool) -> Result<(), String> {
        let fixed = self.params.len();
        if self.variadic.is_some() {
            // Go counts what stands in the command here, without what came through the pipeline.
            let written = count - usize::from(piped);
            if count < fixed {
                return Err(format!(
                    "wrong number of args for {name}: want at least {fixed} got {written}"
                ));
            }
        } else if count != fixed {
            return Err(format!(
                "wrong number of args for {name}: want {fixed} got {count}"
            ));
        }
        Ok(())
    }
}

impl dyn Object {
    /// Whether it is a named list or map.
    pub(crate) fn is_collection(&self) -> bool {
        matches!(self.kind(), Kind::Slice | Kind::Map)
    }

    /// For downcasts.
    pub fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Kind {
    /// The kind's name, as `kindOf` prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint => "uint",
            Self::Uint8 => "uint8",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Complex128 => "complex128",
            Self::String => "string",
            Self::Slice => "slice",
            Self::Map => "map",
            Self::Ptr => "ptr",
            Self::Struct => "struct",
            Self::Func => "func",
        }
    }
}
