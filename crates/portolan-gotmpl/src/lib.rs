//! Go's `text/template` with the functions of sprig and Helm.
//!
//! A text is parsed once into programs (`lexer` → `parser` → `program`), which any number of threads may execute
//! (`exec`) over [`Value`]s, data with Go's kinds. Functions are in tables ([`functions`]) and declare once what Go's
//! reflection must know about them ([`Function`]); clock, random numbers, cluster and name service come through
//! [`Host`].

#![warn(missing_docs)]

pub mod fmt;
mod value;

mod function;
mod host;
mod limits;
mod meter;
mod object;
mod options;

mod convert;
mod error;
mod exec;
mod parse;
mod program;
mod reads;
mod set;

mod builtins;
pub mod functions;
mod helm;
mod values;

pub use error::{Cause, ExecError, ParseError, Place};
pub use exec::Executor;
pub use function::{Args, Ctx, FuncError, Function, NativeFn, Param};
pub use helm::{builtin_functions, clean_output, exec_message, helm_functions, parse_message};
pub use host::{Host, LookupQuery, Seeded};
pub use limits::Limits;
pub use object::{Kind, Object, Signature};
pub use options::{CommentLines, MissingKey, Options};
pub use portolan_budget::{Budget, Exceeded};
pub use portolan_yaml::Text;
pub use reads::{PathId, ReadAnalysis, ReadPaths, ReadingChart};
pub use set::{ParsedText, TemplateSet, TextParser};
pub use value::{
    ElementType, FloatKind, Frozen, IntKind, List, MAX_DEPTH, Map, MapType, UintKind, Value,
};
