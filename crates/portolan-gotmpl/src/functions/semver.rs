//! `semver` and `semverCompare`, and a version as templates see it.

use std::borrow::Cow;

use portolan_semver::{Constraints, Version};

use crate::function::{Args, Ctx, FuncError, Param};
use crate::object::{Kind, Object, Signature};
use crate::value::{UintKind, Value};

type Answer = Result<Value, FuncError>;

const TYPE: &str = "*semver.Version";

pub(super) fn semver(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    Ok(Value::object(SemverObject(version(args, 0)?)))
}

pub(super) fn semver_compare(_: &mut Ctx<'_>, args: Args<'_>) -> Answer {
    let constraints = Constraints::parse(&args.str(0)).map_err(|error| fail(&error))?;
    Ok(constraints.check(&version(args, 1)?).into())
}

fn version(args: Args<'_>, index: usize) -> Result<Version, FuncError> {
    Version::parse(&args.str(index)).map_err(|error| fail(&error))
}

fn fail(error: &dyn std::error::Error) -> FuncError {
    FuncError::new(error.to_string())
}

/// A version with the methods that Go's type has.
pub(super) struct SemverObject(pub(super) Version);

impl Object for SemverObject {
    fn type_name(&self) -> Cow<'static, str> {
        TYPE.into()
    }

    fn kind(&self) -> Kind {
        Kind::Ptr
    }

    fn method(&self, name: &str) -> Option<Signature> {
        const OTHER: Signature = Signature::new(&[Param::Object(TYPE)]);
        const TEXT: Signature = Signature::new(&[Param::Str]);
        match name {
            "Major" | "Minor" | "Patch" | "Prerelease" | "Metadata" | "Original" | "String"
            | "IncMajor" | "IncMinor" | "IncPatch" => Some(Signature::NONE),
            "Compare" | "Equal" | "LessThan" | "LessThanEqual" | "GreaterThan"
            | "GreaterThanEqual" => Some(OTHER),
            "SetPrerelease" | "SetMetadata" => Some(TEXT),
            _ => None,
        }
    }

    fn call(&self, _: &mut Ctx<'_>, name: &str, args: Args<'_>) -> Answer {
        let version = &self.0;
        let number = |value| Ok(Value::Uint(UintKind::Uint64, value));
        let object = |version| Ok(Value::object(Self(version)));
        let other = args
            .get(0)
            .downcast::<Self>()
            .map_or(version, |other| &other.0);
        match name {
            "Major" => number(version.major()),
            "Minor" => number(version.minor()),
            "Patch" => number(version.patch()),
            "Prerelease" => Ok(version.prerelease().into()),
            "Metadata" => Ok(version.metadata().into()),
            "Original" => Ok(version.original().into()),
            "String" => Ok(version.to_string().into()),
            "IncMajor" => object(version.next_major()),
            "IncMinor" => object(version.next_minor()),
            "IncPatch" => object(version.next_patch()),
            "Compare" => Ok(Value::int(version.cmp(other) as i64)),
            "Equal" => Ok((version == other).into()),
            "LessThan" => Ok((version < other).into()),
            "LessThanEqual" => Ok((version <= other).into()),
            "GreaterThan" => Ok((version > other).into()),
            "GreaterThanEqual" => Ok((version >= other).into()),
            "SetPrerelease" => object(
                version
                    .with_prerelease(&args.str(0))
                    .map_err(|e| fail(&e))?,
            ),
            "SetMetadata" => object(version.with_metadata(&args.str(0)).map_err(|e| fail(&e))?),
            _ => Err(FuncError::new(format!("no method {name}"))),
        }
    }

    fn print(&self, out: &mut String) {
        out.push_str(&self.0.to_string());
    }

    fn truth(&self) -> bool {
        true
    }
}
