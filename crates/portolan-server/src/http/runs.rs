//! The routes of runs: making one, its parts on nodes, and what people ask of it meanwhile.

use axum::extract::Request;
use axum::response::Response;
use http::{Method, StatusCode};
use serde_json::Value;

use super::reply::json_reply;
use super::route::{checked_target, find};
use super::{Http, allow, read_json};
use crate::error::ApiError;
use crate::runs::{ExecRequest, FileQuestion, Repetition, RunRequest, RunWish};
use crate::server::{Caller, Target};

/// What a path of runs is about.
#[derive(Debug)]
pub(super) enum RunRoute {
    /// Makes a run of a TaskBook.
    Start(Target),
    /// The parts of nodes in a run.
    Nodes(Target),
    /// The plan of a check.
    Plan(Target),
    Cancel(Target),
    Resume(Target),
    Approve(Target),
    /// Makes a new run of what a run was made from.
    Repeat(Target),
    /// Files for books that come with a request.
    Files(Target),
    /// Makes a run of a single command in a namespace.
    Exec(Target),
}

impl RunRoute {
    /// The route of a path; `None` if it is about something else.
    pub(super) fn parse(parts: &[&str]) -> Option<Result<Self, ApiError>> {
        if let ["namespaces", namespace, "exec"] = parts {
            let target = find("runs").and_then(|kind| checked_target(kind, Some(namespace), None));
            return Some(target.map(Self::Exec));
        }
        let ["namespaces", namespace, plural, name, what] = parts else {
            return None;
        };
        let route = match (*plural, *what) {
            ("taskbooks", "run") => Self::Start,
            ("runs", "nodes") => Self::Nodes,
            ("runs", "plan") => Self::Plan,
            ("runs", "cancel") => Self::Cancel,
            ("runs", "resume") => Self::Resume,
            ("runs", "approve") => Self::Approve,
            ("runs", "rerun") => Self::Repeat,
            ("taskbooks", "files") => Self::Files,
            _ => return None,
        };
        let target =
            find(plural).and_then(|kind| checked_target(kind, Some(namespace), Some(name)));
        Some(target.map(route))
    }

    /// Whether agents may use it: each gets its own part.
    pub(super) fn is_for_nodes(&self) -> bool {
        matches!(self, Self::Nodes(_))
    }
}

impl Http {
    pub(super) async fn runs(
        &self,
        caller: &Caller,
        route: RunRoute,
        request: Request,
    ) -> Result<Response, ApiError> {
        let server = &self.server;
        match route {
            RunRoute::Start(target) => {
                allow(&request, &[Method::POST])?;
                server.authorise(caller, "run", &target).await?;
                let asked = RunRequest::read(&read_json(request).await?)?;
                let run = server.start_run(caller, &target, asked).await?;
                Ok(json_reply(StatusCode::CREATED, &run))
            }
            RunRoute::Nodes(target) => {
                allow(&request, &[Method::GET])?;
                let node = caller.identity.node.as_deref();
                if node.is_none() {
                    server.authorise(caller, "get", &target).await?;
                }
                let report = server.run_report(&target, node).await?;
                Ok(json_reply(StatusCode::OK, &report))
            }
            RunRoute::Plan(target) => {
                allow(&request, &[Method::GET])?;
                server.authorise(caller, "get", &target).await?;
                let plan = server.plan_of_run(&target).await?;
                Ok(json_reply(StatusCode::OK, &plan))
            }
            RunRoute::Cancel(target) => {
                allow(&request, &[Method::POST])?;
                server.authorise(caller, "run", &target).await?;
                let body = read_json(request).await?;
                let wish = match body.get("how").and_then(Value::as_str) {
                    None | Some("drain") => RunWish::Drain,
                    Some("now") => RunWish::Now,
                    Some(_) => return Err(ApiError::bad_request("`how` must be `drain` or `now`")),
                };
                let run = server.wish_for_run(caller, &target, wish).await?;
                Ok(json_reply(StatusCode::OK, &run))
            }
            RunRoute::Files(target) => {
                allow(&request, &[Method::POST])?;
                // Who brings files brings a book.
                server.authorise(caller, "run", &target).await?;
                server.authorise(caller, "update", &target).await?;
                let question = FileQuestion::read(&read_json(request).await?)?;
                let answer = server.answer_files(&target, question).await?;
                Ok(json_reply(StatusCode::OK, &answer))
            }
            RunRoute::Exec(target) => {
                allow(&request, &[Method::POST])?;
                server.authorise(caller, "exec", &target).await?;
                let asked = ExecRequest::read(&read_json(request).await?)?;
                let namespace = target.namespace.as_deref().unwrap_or_default();
                let run = server.start_exec(caller, namespace, asked).await?;
                Ok(json_reply(StatusCode::CREATED, &run))
            }
            RunRoute::Repeat(target) => {
                allow(&request, &[Method::POST])?;
                server.authorise(caller, "get", &target).await?;
                let repetition = Repetition::read(&read_json(request).await?)?;
                let run = server.repeat_run(caller, &target, repetition).await?;
                Ok(json_reply(StatusCode::CREATED, &run))
            }
            RunRoute::Approve(target) => {
                allow(&request, &[Method::POST])?;
                server.authorise(caller, "approve", &target).await?;
                let run = server
                    .wish_for_run(caller, &target, RunWish::Approve)
                    .await?;
                Ok(json_reply(StatusCode::OK, &run))
            }
            RunRoute::Resume(target) => {
                allow(&request, &[Method::POST])?;
                server.authorise(caller, "run", &target).await?;
                let run = server
                    .wish_for_run(caller, &target, RunWish::Resume)
                    .await?;
                Ok(json_reply(StatusCode::OK, &run))
            }
        }
    }
}
