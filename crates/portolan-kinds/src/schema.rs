//! The messages of all kinds, read from the descriptors that are generated from `proto/`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet,
};

/// The file descriptor set of all messages and services, as gRPC's reflection serves it.
pub const DESCRIPTORS: &[u8] = include_bytes!("wire/descriptors.bin");

/// The package of all messages.
const PACKAGE: &str = ".portolan.v1alpha.";

/// A message: its fields and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSchema {
    /// Its name without the package, such as `NodeSpec`.
    pub name: String,
    /// What it is, from the comment in its file.
    pub doc: String,
    /// Its fields by number.
    pub fields: Vec<FieldSchema>,
}

/// A field of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSchema {
    /// Its name in JSON.
    pub name: String,
    /// Its number in protobuf.
    pub number: u32,
    /// What it is, from the comment in its file.
    pub doc: String,
    /// What it holds.
    pub shape: FieldShape,
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldShape {
    /// True or false.
    Flag,
    /// A whole number from 0 to 4,294,967,295.
    Count,
    /// A text.
    Text,
    /// One of some words, with their numbers in protobuf.
    Word(Vec<(String, i32)>),
    /// Any value.
    Free,
    /// A message, by name.
    Message(String),
    /// A list.
    List(Box<Self>),
    /// A map with texts as keys.
    Map(Box<Self>),
}

/// The message of a name such as `NodeSpec`; `None` for one that holds fields which no JSON has, or is not there.
pub fn message(name: &str) -> Option<&'static MessageSchema> {
    static MESSAGES: LazyLock<BTreeMap<String, MessageSchema>> = LazyLock::new(read_descriptors);
    MESSAGES.get(name)
}

impl MessageSchema {
    /// The field of a name in JSON.
    pub fn field(&self, name: &str) -> Option<&FieldSchema> {
        self.fields.iter().find(|field| field.name == name)
    }
}

fn read_descriptors() -> BTreeMap<String, MessageSchema> {
    let set = FileDescriptorSet::decode(DESCRIPTORS).expect("the descriptors are generated");
    let mut messages = BTreeMap::new();
    let mut words = BTreeMap::new();
    for file in &set.file {
        for one in &file.enum_type {
            words.insert(one.name().to_owned(), words_of(one));
        }
    }
    for file in set
        .file
        .iter()
        .filter(|file| file.package() == "portolan.v1alpha")
    {
        let comments = Comments::of(file);
        for (index, descriptor) in file.message_type.iter().enumerate() {
            if let Some(message) = read_message(descriptor, index as i32, &comments, &words) {
                messages.insert(message.name.clone(), message);
            }
        }
    }
    messages
}

fn read_message(
    descriptor: &DescriptorProto,
    index: i32,
    comments: &Comments<'_>,
    words: &BTreeMap<String, Vec<(String, i32)>>,
) -> Option<MessageSchema> {
    let mut fields = Vec::with_capacity(descriptor.field.len());
    for (number, field) in descriptor.field.iter().enumerate() {
        fields.push(FieldSchema {
            name: field.json_name().to_owned(),
            number: field.number().unsigned_abs(),
            doc: comments.at(&[4, index, 2, number as i32]),
            shape: read_shape(field, descriptor, words)?,
        });
    }
    fields.sort_by_key(|field| field.number);
    Some(MessageSchema {
        name: descriptor.name().to_owned(),
        doc: comments.at(&[4, index]),
        fields,
    })
}

/// `None` for shapes that messages of kinds do not have.
fn read_shape(
    field: &FieldDescriptorProto,
    descriptor: &DescriptorProto,
    words: &BTreeMap<String, Vec<(String, i32)>>,
) -> Option<FieldShape> {
    let name = field.type_name().rsplit('.').next().unwrap_or_default();
    let entry = descriptor.nested_type.iter().find(|nested| {
        let options = nested.options.as_ref();
        nested.name() == name && options.is_some_and(prost_types::MessageOptions::map_entry)
    });
    if let Some(entry) = entry {
        let value = entry.field.iter().find(|field| field.number() == 2)?;
        return Some(FieldShape::Map(Box::new(read_shape(value, entry, words)?)));
    }
    let shape = match field.r#type() {
        Type::Bool => FieldShape::Flag,
        Type::Uint32 => FieldShape::Count,
        Type::String => FieldShape::Text,
        Type::Enum => FieldShape::Word(words.get(name)?.clone()),
        Type::Message if field.type_name() == format!("{PACKAGE}Value") => FieldShape::Free,
        Type::Message => FieldShape::Message(name.to_owned()),
        _ => return None,
    };
    Some(match field.label() {
        Label::Repeated => FieldShape::List(Box::new(shape)),
        _ => shape,
    })
}

/// `NODE_STATE_LINK_LOST` of `NodeState` is the word `link-lost`; 0 is no word.
fn words_of(descriptor: &EnumDescriptorProto) -> Vec<(String, i32)> {
    let zero = descriptor.value.first().map_or("", |value| value.name());
    let prefix = zero.strip_suffix("UNSPECIFIED").unwrap_or_default();
    let values = descriptor.value.iter().filter(|value| value.number() != 0);
    let word = |name: &str| {
        let name = name.strip_prefix(prefix).unwrap_or(name);
        name.to_ascii_lowercase().replace('_', "-")
    };
    values
        .map(|value| (word(value.name()), value.number()))
        .collect()
}

/// The comments of a file by the path of what they stand before.
struct Comments<'f>(BTreeMap<&'f [i32], &'f str>);

impl<'f> Comments<'f> {
    fn of(file: &'f FileDescriptorProto) -> Self {
        let locations = file.source_code_info.iter().flat_map(|info| &info.location);
        let comments = locations
            .filter(|location| location.leading_comments.is_some())
            .map(|location| (location.path.as_slice(), location.leading_comments()));
        Self(comments.collect())
    }

    /// The comment as one line, without the full stop of a single sentence.
    fn at(&self, path: &[i32]) -> String {
        let comment = self.0.get(path).copied().unwrap_or_default();
        comment.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_their_names_shapes_and_comments() {
        let node = message("NodeStatus").expect("it is there");
        let state = node.field("state").expect("it is there");
        assert_eq!(state.doc, "What is known of its agent.");
        let FieldShape::Word(words) = &state.shape else {
            unreachable!("a word: {state:?}");
        };
        assert_eq!(words[2], ("link-lost".to_owned(), 3));
        assert!(node.field("certificateExpires").is_some());
    }

    #[test]
    fn every_message_and_field_has_a_comment() {
        for name in [
            "Metadata",
            "NodeSpec",
            "VariableSpec",
            "RoleSpec",
            "EventSpec",
        ] {
            let message = message(name).expect("it is there");
            assert!(!message.doc.is_empty(), "{name}");
            for field in &message.fields {
                assert!(!field.doc.is_empty(), "{name}.{}", field.name);
            }
        }
    }
}
