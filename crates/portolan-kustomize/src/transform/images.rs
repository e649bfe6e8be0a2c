//! `images`: new names, tags and digests.

use portolan_budget::Budget;
use portolan_yaml::{Node, Text, Value};
use regex::Regex;

use crate::config::FieldSpec;
use crate::error::Result;
use crate::load::decode::{Fields, Strictness};
use crate::resource::set::ResourceSet;
use crate::value::cost::{PATTERN_STEPS, charge_walk};
use crate::value::field::{NewTag, set_scalar, text, wrong_shape};
use crate::value::fieldspec::{Missing, visit};

/// An entry of `images`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Image {
    pub(crate) name: Text,
    pub(crate) new_name: Text,
    pub(crate) new_tag: Text,
    pub(crate) digest: Text,
    pub(crate) tag_suffix: Text,
}

pub(crate) fn read_image(node: &Node, strictness: Strictness) -> Result<Image> {
    let names = ["name", "newName", "tagSuffix", "newTag", "digest"];
    let fields = Fields::read(node, "Image", &names, strictness)?;
    Ok(Image {
        name: fields.text("name")?,
        new_name: fields.text("newName")?,
        new_tag: fields.text("newTag")?,
        digest: fields.text("digest")?,
        tag_suffix: fields.text("tagSuffix")?,
    })
}

/// Changes an image everywhere: first in all lists called `containers` or `initContainers`, then at the fields of the
/// specs. Ordinary containers are visited twice, which shows with `tagSuffix`.
pub(crate) fn set_images(
    set: &mut ResourceSet,
    image: &Image,
    specs: &[FieldSpec],
    budget: &Budget,
) -> Result<()> {
    budget.step(PATTERN_STEPS)?;
    let matcher = Matcher::new(&image.name)?;
    let mut update = |node: &mut Node| update(node, image, &matcher);
    for position in 0..set.len() {
        let Some(resource) = set.get_mut(position) else {
            continue;
        };
        if resource.kind().as_str() == "CustomResourceDefinition" {
            continue;
        }
        charge_walk(&resource.node, budget)?;
        if has_containers(&resource.node) {
            walk_containers(&mut resource.node, &mut update)?;
        }
    }
    for position in 0..set.len() {
        let Some(resource) = set.get_mut(position) else {
            continue;
        };
        let gvk = resource.gvk();
        if gvk.kind.as_str() == "CustomResourceDefinition" {
            continue;
        }
        for spec in specs {
            visit(&mut resource.node, &gvk, spec, Missing::Leave, &mut update)?;
        }
    }
    Ok(())
}

fn is_container_list(key: &str) -> bool {
    matches!(key, "containers" | "initContainers")
}

fn has_containers(node: &Node) -> bool {
    match &node.value {
        Value::Scalar(_) => false,
        Value::List(list) => list.iter().any(has_containers),
        Value::Map(map) => map
            .iter()
            .any(|entry| is_container_list(entry.key.as_str()) || has_containers(&entry.value)),
    }
}

fn walk_containers(node: &mut Node, update: &mut dyn FnMut(&mut Node) -> Result<()>) -> Result<()> {
    match &mut node.value {
        Value::Scalar(_) => Ok(()),
        Value::List(list) => {
            if !list.iter().any(has_containers) {
                return Ok(());
            }
            list.items_mut()
                .iter_mut()
                .try_for_each(|item| walk_containers(item, update))
        }
        Value::Map(map) => {
            for entry in map.entries_mut() {
                walk_containers(&mut entry.value, update)?;
                if is_container_list(entry.key.as_str())
                    && let Some(list) = entry.value.as_list_mut()
                {
                    for container in list.items_mut() {
                        update_container(container, update)?;
                    }
                }
            }
            Ok(())
        }
    }
}

fn update_container(
    container: &mut Node,
    update: &mut dyn FnMut(&mut Node) -> Result<()>,
) -> Result<()> {
    if container.is_null() {
        return Ok(());
    }
    if container.as_map().is_none() {
        return Err(wrong_shape("MappingNode", container));
    }
    match container.get_mut("image") {
        Some(image) => update(image),
        None => Ok(()),
    }
}

fn update(node: &mut Node, image: &Image, matcher: &Matcher) -> Result<()> {
    if node.as_scalar().is_none() {
        return Err(wrong_shape("ScalarNode", node));
    }
    let value = text(node);
    if !matcher.is_match(&value) {
        return Ok(());
    }
    let (name, tag, digest) = split(&value);
    let mut name = if image.new_name.is_empty() {
        name.to_owned()
    } else {
        image.new_name.to_string()
    };
    let (tag, digest) = match (
        image.new_tag.as_str(),
        image.digest.as_str(),
        image.tag_suffix.as_str(),
    ) {
        ("", "", "") => (tag.to_owned(), digest.to_owned()),
        ("", "", suffix) => (format!("{tag}{suffix}"), String::new()),
        (tag, digest, _) => (tag.to_owned(), digest.to_owned()),
    };
    if !tag.is_empty() {
        name = format!("{name}:{tag}");
    }
    if !digest.is_empty() {
        name = format!("{name}@{digest}");
    }
    set_scalar(node, name, NewTag::AsRead)
}

/// Name, tag and digest of an image.
fn split(image: &str) -> (&str, &str, &str) {
    let host = image.find('/').filter(|index| *index > 0).unwrap_or(0);
    let search = image.get(host..).unwrap_or_default();
    let at = search.find('@').map(|index| index + host);
    let colon = search.find(':').map(|index| index + host);
    let cut = |from: usize, to: usize| image.get(from..to).unwrap_or_default();
    match (colon, at) {
        (colon, Some(at)) if colon.is_none_or(|colon| at < colon) => {
            (cut(0, at), "", cut(at + 1, image.len()))
        }
        (Some(colon), Some(at)) => (cut(0, colon), cut(colon + 1, at), cut(at + 1, image.len())),
        (Some(colon), None) => (cut(0, colon), cut(colon + 1, image.len()), ""),
        (None, _) => (image, "", ""),
    }
}

/// Whether an image has a name. The name is a pattern in the middle of a regular expression.
enum Matcher {
    Exact(String),
    Regex(Regex),
}

impl Matcher {
    fn new(name: &str) -> Result<Self> {
        let is_plain = name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-_/:".contains(letter));
        if is_plain {
            return Ok(Self::Exact(name.to_owned()));
        }
        let pattern = format!("^{name}(:[a-zA-Z0-9_.{{}}-]*)?(@sha256:[a-zA-Z0-9_.{{}}-]*)?$");
        Ok(Self::Regex(crate::value::regexp::compile(&pattern)?))
    }

    fn is_match(&self, image: &str) -> bool {
        match self {
            Self::Exact(name) => image.strip_prefix(name.as_str()).is_some_and(is_rest),
            Self::Regex(regex) => regex.is_match(image),
        }
    }
}

/// What may follow the name: a tag, a digest, both or nothing.
fn is_rest(rest: &str) -> bool {
    let is_word = |text: &str| {
        text.chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "_.{}-".contains(letter))
    };
    let (tag, digest) = match rest.find('@') {
        Some(at) => (&rest[..at], &rest[at..]),
        None => (rest, ""),
    };
    (tag.is_empty() || tag.strip_prefix(':').is_some_and(is_word))
        && (digest.is_empty() || digest.strip_prefix("@sha256:").is_some_and(is_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_the_host_is_no_tag() {
        assert_eq!(split("r:5000/a:1@sha256:0"), ("r:5000/a", "1", "sha256:0"));
        assert_eq!(split("r:5000/a"), ("r:5000/a", "", ""));
        assert_eq!(split("a@sha256:0"), ("a", "", "sha256:0"));
    }

    #[test]
    fn plain_names_match_like_their_pattern() {
        let check = |name: &str, image: &str, expected: bool| {
            assert_eq!(
                Matcher::new(name).unwrap().is_match(image),
                expected,
                "{name} {image}"
            );
        };
        check("nginx", "nginx:1.0@sha256:ab", true);
        check("nginx", "nginx", true);
        check("nginx", "nginx2", false);
        check("nginx", "nginx:1:2", false);
        check("n.inx", "nginx:1", true);
        check("my.reg/a", "my.reg/a:1", true);
    }
}
