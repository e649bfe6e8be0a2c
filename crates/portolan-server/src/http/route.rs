//! What a path is about.

use portolan_kinds::{KINDS, KindDefinition};
use portolan_object::{NameRule, similar};

use super::blobs::BlobRoute;
use super::identity::IdentityRoute;
use super::live::LiveRoute;
use super::query::decoded;
use super::runs::RunRoute;
use crate::error::ApiError;
use crate::server::Target;

/// What a path is about.
#[derive(Debug)]
pub(super) enum Route {
    Objects(Target),
    Status,
    CanI,
    Rights,
    Tokens,
    Token(String),
    Identity(IdentityRoute),
    Runs(RunRoute),
    Blobs(BlobRoute),
    Live(LiveRoute),
}

impl Route {
    pub(super) fn parse(path: &str) -> Result<Self, ApiError> {
        let nothing = || ApiError::not_found(&format!("path {path}"));
        let rest = path.strip_prefix("/api/v1alpha/").ok_or_else(nothing)?;
        let parts: Result<Vec<String>, ApiError> = rest.split('/').map(decoded_part).collect();
        let parts = parts?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        if let Some(route) = IdentityRoute::parse(&parts) {
            return Ok(Self::Identity(route));
        }
        if let Some(route) = RunRoute::parse(&parts) {
            return route.map(Self::Runs);
        }
        if let Some(route) = BlobRoute::parse(&parts) {
            return route.map(Self::Blobs);
        }
        if let Some(route) = LiveRoute::parse(&parts) {
            return route.map(Self::Live);
        }
        match parts.as_slice() {
            ["status"] => Ok(Self::Status),
            ["auth", "can-i"] => Ok(Self::CanI),
            ["auth", "rights"] => Ok(Self::Rights),
            ["auth", "tokens"] => Ok(Self::Tokens),
            ["auth", "tokens", id] => Ok(Self::Token((*id).to_owned())),
            [plural] => target(plural, None, None),
            [plural, name] => target(plural, None, Some(name)),
            ["namespaces", namespace, plural] => target(plural, Some(namespace), None),
            ["namespaces", namespace, plural, name] => target(plural, Some(namespace), Some(name)),
            _ => Err(nothing()),
        }
    }
}

fn target(plural: &str, namespace: Option<&str>, name: Option<&str>) -> Result<Route, ApiError> {
    checked_target(find(plural)?, namespace, name).map(Route::Objects)
}

/// What a request is about; names that cannot be are refused.
pub(super) fn checked_target(
    kind: &'static KindDefinition,
    namespace: Option<&str>,
    name: Option<&str>,
) -> Result<Target, ApiError> {
    if namespace.is_some() && !kind.is_namespaced {
        let message = format!(
            "{} are global: their path is /api/v1alpha/{}",
            kind.plural, kind.plural
        );
        return Err(ApiError::bad_request(message));
    }
    if namespace.is_some_and(|namespace| !NameRule::Label.fits(namespace)) {
        return Err(ApiError::bad_request(format!(
            "the namespace {}",
            NameRule::Label
        )));
    }
    if namespace.is_none() && name.is_some() && kind.is_namespaced {
        let message = format!(
            "{} are in namespaces: their path is /api/v1alpha/namespaces/NAMESPACE/{}",
            kind.plural, kind.plural
        );
        return Err(ApiError::bad_request(message));
    }
    if name.is_some_and(|name| !NameRule::Segment.fits(name) || name.len() > 253) {
        return Err(ApiError::bad_request(format!(
            "the name {}",
            NameRule::Segment
        )));
    }
    Ok(Target {
        kind,
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
    })
}

pub(super) fn find(plural: &str) -> Result<&'static KindDefinition, ApiError> {
    let found = KINDS.into_iter().find(|kind| kind.plural == plural);
    found.ok_or_else(|| {
        let error = ApiError::not_found(&format!("kind {plural}"));
        match similar(plural, KINDS, |kind| kind.plural) {
            Some(near) => error.hint(format!("did you mean `{}`?", near.plural)),
            None => error.hint(format!(
                "there are {}",
                KINDS.map(|kind| kind.plural).join(", ")
            )),
        }
    })
}

/// A `+` in a path is a plus.
fn decoded_part(part: &str) -> Result<String, ApiError> {
    decoded(&part.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_of_the_document_leads_somewhere_and_every_route_is_in_it() {
        let paths = crate::openapi::document()["paths"].as_object();
        let paths = paths.expect("paths");
        for path in paths.keys() {
            let path = path
                .replace("{digest}", &"ab".repeat(32))
                .replace("{fingerprint}", &"ab".repeat(32))
                .replace(['{', '}'], "");
            assert!(Route::parse(&path).is_ok(), "{path}");
        }
        let of_runs = ["nodes", "plan", "cancel", "resume", "approve", "rerun"];
        let of_runs = of_runs.map(|what| format!("runs/{{name}}/{what}"));
        let others = [
            "taskbooks/{name}/run",
            "taskbooks/{name}/files",
            "exec",
            "blobs",
            "blobs/{digest}",
            "webhooks/{name}/deliver",
            "nodes/{node}/variables",
        ];
        let others = others.map(str::to_owned);
        for rest in of_runs.into_iter().chain(others) {
            let path = format!("/api/v1alpha/namespaces/{{namespace}}/{rest}");
            assert!(paths.contains_key(&path), "{path}");
        }
    }
}
