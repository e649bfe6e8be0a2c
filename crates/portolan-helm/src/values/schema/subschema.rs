//! The parts of compiled schemas that both validators share: places in a table instead of references.

/// A subschema's place in the table.
pub(super) type Id = usize;

/// What holds for properties or items that nothing else describes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rest {
    Allowed(bool),
    Schema(Id),
}

/// What a property needs beside it.
#[derive(Debug)]
pub(super) enum Needs {
    Properties(Vec<String>),
    Schema(Id),
}
