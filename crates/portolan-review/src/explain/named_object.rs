//! The object and field that a user names.

use portolan_object::nearest;

use super::field_query::FieldQuery;
use crate::ReviewError;
use crate::inventory::{PlacedObject, kind_names};

/// An object that was named, optionally with a field.
pub struct NamedObject<'a> {
    /// The object.
    pub placed: &'a PlacedObject<'a>,
    /// The way to the field.
    pub field: Option<FieldQuery>,
}

impl<'a> NamedObject<'a> {
    /// The objects that `KIND/[NAMESPACE/]NAME[.FIELD]` names, one for each cluster that has it.
    pub fn find(
        text: &str,
        namespace: Option<&str>,
        objects: &'a [PlacedObject<'a>],
    ) -> Result<Vec<Self>, ReviewError> {
        let (kind, rest) = text.split_once('/').ok_or_else(|| {
            ReviewError::refused(format!("`{text}` names no object"))
                .hint("write KIND/NAME, as in `deploy/web` or `deploy/web.spec.replicas`")
        })?;
        let kinds = kind_names(objects);
        let (namespace, rest) = match namespace_in(rest) {
            Some((namespace, rest)) => (Some(namespace), rest),
            None => (namespace, rest),
        };
        let of_kind: Vec<&PlacedObject<'_>> = objects
            .iter()
            .filter(|placed| kinds.is(kind, &placed.id.gvk))
            .filter(|placed| namespace.is_none_or(|wanted| placed.id.namespace == wanted))
            .collect();
        // Names have dots too: the longest name that an object has is meant.
        let longest = of_kind
            .iter()
            .filter(|placed| is_name_in(rest, &placed.id.name))
            .map(|placed| placed.id.name.len())
            .max();
        let Some(length) = longest else {
            // One of that name in another namespace is nearer than another name in this one.
            let mut elsewhere = objects
                .iter()
                .filter(|placed| kinds.is(kind, &placed.id.gvk));
            let elsewhere = elsewhere.find(|placed| is_name_in(rest, &placed.id.name));
            return Err(not_there(kind, rest, elsewhere, &of_kind));
        };
        let field = match rest[length..].trim_start_matches('.') {
            "" => None,
            field => Some(FieldQuery::parse(field)?),
        };
        let named: Vec<&PlacedObject<'_>> = of_kind
            .into_iter()
            .filter(|placed| placed.id.name == rest[..length])
            .collect();
        refuse_several(&named, text)?;
        Ok(named
            .into_iter()
            .map(|placed| Self {
                placed,
                field: field.clone(),
            })
            .collect())
    }
}

/// The namespace before a slash; a slash in a field's name comes after a dot or bracket, which no namespace has.
fn namespace_in(text: &str) -> Option<(&str, &str)> {
    text.split_once('/')
        .filter(|(namespace, _)| !namespace.contains(['.', '[']))
}

/// Whether the text is the name, or the name and a field.
fn is_name_in(text: &str, name: &str) -> bool {
    let rest = text.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn not_there(
    kind: &str,
    rest: &str,
    elsewhere: Option<&PlacedObject<'_>>,
    of_kind: &[&PlacedObject<'_>],
) -> ReviewError {
    let error = ReviewError::refused(format!("no object is `{kind}/{rest}`"));
    let wanted = [rest.split('.').next().unwrap_or(rest).to_owned()];
    let near = || nearest(&wanted, of_kind.iter(), |placed| placed.id.name.as_str()).copied();
    match elsewhere.or_else(near) {
        Some(placed) => error.hint(format!(
            "there is `{kind}/{}` in {}",
            placed.id.name, placed.id.namespace
        )),
        None => error.hint("`portolan get objects` lists all objects with their kinds"),
    }
}

/// One name in two namespaces of a cluster means that the user has to say which.
fn refuse_several(named: &[&PlacedObject<'_>], text: &str) -> Result<(), ReviewError> {
    let mut namespaces: Vec<&str> = named
        .iter()
        .map(|placed| placed.id.namespace.as_str())
        .collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    if namespaces.len() < 2 {
        return Ok(());
    }
    let error = ReviewError::refused(format!("`{text}` is in several namespaces"));
    Err(error.hint(format!("choose one: -n {}", namespaces.join(", -n "))))
}
