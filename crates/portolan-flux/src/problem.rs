//! What is wrong with a rendered cluster: one entry per mistake, with its place and what to do.

pub(crate) mod advice;
pub(crate) mod ancestry;
pub(crate) mod coverage;
pub(crate) mod error_line;
pub(crate) mod refused_value;
pub(crate) mod rule;
pub(crate) mod unread_value;
pub(crate) mod written;

use std::error::Error;

use camino::Utf8Path;
use portolan_engine::{Failure, Key, Outcome, Report, causes};
use portolan_object::{
    Act, Cause, Finding, Object, Origin, Owner, OwnerKind, Place, Rule, Severity, holds_placeholder,
};
use portolan_vfs::{Vfs, resolve};
use portolan_yaml::{Node, Position};

use crate::api::{
    Chart, DataKind, Dependency, FieldError, HelmRelease, Kustomization, NamespacedName, SourceRef,
};
use crate::cluster::SourceError;
use crate::kustomization::build::BuildError;
use crate::kustomization::generate::GenerateError;
use crate::problem::rule::{
    BAD_VALUES, BUILD_FAILED, CHART_INVALID, CHART_UNAVAILABLE, DEPENDENCY_CIRCLE,
    DEPENDENCY_MISSING, INVALID_FIELD, MISSING_DATA, MISSING_INPUTS, NOT_KNOWN_HERE,
    OUTSIDE_INPUTS, RELEASE_REFUSED, SOURCE_MISSING, SOURCE_UNAVAILABLE, SUSPENDED, UNSET_VARIABLE,
    UNSETTLED,
};
use crate::problem::written::written_here;
use crate::release::ReleaseError;
use crate::release::chart::{self, ChartError};
use crate::render::{RenderedRelease, Rendering};
use crate::source::artifact_generator::CopyError;
use crate::walk::dependencies;
use crate::walk::expansion::Expansion;
use crate::walk::index::{Emitter, Index, SOURCE_GROUP};
use crate::walk::resource_set::ResourceSetError;
use crate::walk::{Walk, Walked};

/// What notes on data have in common that is not missing in the cluster.
pub const MADE_IN_CLUSTER: &str =
    "objects take data that something in the repository makes in the cluster";

/// Everything that is wrong with a rendered cluster, by kind and name; `files` are those that were rendered.
pub fn problems(rendering: &Rendering, report: &Report, files: &dyn Vfs) -> Vec<Finding> {
    let walk = &rendering.walk;
    let mut found = FoundSoFar {
        files,
        is_complete: walk.is_complete,
        findings: Vec::new(),
    };
    for (id, walked) in &walk.kustomizations {
        let definition = walked.definition.as_ref();
        let mut about = About::new(OwnerKind::Kustomization, id, definition, &mut found);
        about.kustomization(walked, &walk.index, report);
    }
    for (emitter, expansion) in &walk.expansions {
        let definition = Some(&expansion.definition);
        let mut about = About::new(emitter.owner_kind(), emitter.id(), definition, &mut found);
        about.expansion(emitter, expansion, report);
    }
    for (id, release) in &rendering.releases {
        let definition = Some(&release.definition);
        let mut about = About::new(OwnerKind::Release, id, definition, &mut found);
        about.release(release, &walk.index, report);
    }
    if walk.is_complete {
        about_dependencies(rendering, report, &mut found);
    }
    let mut findings = found.findings;
    for finding in &mut findings {
        let causes = finding.cause.iter_mut().map(|cause| &mut cause.why);
        let texts = finding.messages.iter_mut().chain(&mut finding.hints);
        // A chart may fail with its values, and an address may hold a password.
        texts.chain(causes).for_each(|text| {
            walk.index.hide_secrets(text);
            make_relative(text, files);
        });
    }
    findings
}

/// Takes the slash from paths of the repository that stand in backquotes: files are named from its top everywhere.
fn make_relative(text: &mut String, files: &dyn Vfs) {
    let mut from = 0;
    while let Some(at) = text[from..].find("`/").map(|at| from + at + 1) {
        let rest = &text[at + 1..];
        let first = rest.split(['/', '`', ':']).next().unwrap_or_default();
        let entry = Utf8Path::new("/").join(first);
        let is_ours = !first.is_empty() && (files.is_directory(&entry) || files.is_file(&entry));
        if is_ours {
            text.remove(at);
        }
        from = at;
    }
}

/// Dependencies decide order and never content; they are only looked at.
fn about_dependencies(rendering: &Rendering, report: &Report, found: &mut FoundSoFar<'_>) {
    let lacks_some = lacks_some(&rendering.walk, report);
    let kustomizations = rendering.walk.kustomizations.iter();
    let kustomizations: Vec<_> = kustomizations
        .filter_map(|(id, walked)| {
            let spec = walked.spec.as_ref().ok()?;
            Some((id, walked.definition.as_ref(), spec.depends_on.as_slice()))
        })
        .collect();
    dependency_problems(OwnerKind::Kustomization, &kustomizations, lacks_some, found);
    let releases = rendering.releases.iter();
    let mut releases: Vec<_> = releases
        .filter_map(|(id, release)| {
            let spec = release.spec.as_ref().ok()?;
            Some((id, Some(&release.definition), spec.depends_on.as_slice()))
        })
        .collect();
    // What was not looked at is there to be depended on.
    releases.extend(
        rendering
            .unchanged
            .keys()
            .map(|id| (id, None, [].as_slice())),
    );
    dependency_problems(OwnerKind::Release, &releases, lacks_some, found);
}

/// Whether something that brings objects could not be built, so that nothing is known to be missing.
fn lacks_some(walk: &Walk, report: &Report) -> bool {
    let has_failed = |unit: Option<&Key>| unit.and_then(|key| failure(report, key)).is_some();
    let mut kustomizations = walk.kustomizations.values();
    kustomizations.any(|walked| {
        walked.unavailable.is_some() || walked.spec.is_err() || has_failed(walked.unit.as_ref())
    }) || walk
        .expansions
        .values()
        .any(|one| has_failed(one.unit.as_ref()))
}

fn dependency_problems(
    kind: OwnerKind,
    objects: &[(&NamespacedName, Option<&Object>, &[Dependency])],
    lacks_some: bool,
    found: &mut FoundSoFar<'_>,
) {
    for finding in dependencies::check(objects.iter().map(|(id, _, on)| (*id, *on))) {
        let definition = objects.iter().find(|(id, ..)| *id == finding.of);
        let definition = definition.and_then(|(_, definition, _)| *definition);
        let mut about = About::new(kind, finding.of, definition, found);
        let place = about.place(finding.at, &finding.on.name);
        match finding.circle {
            Some(circle) => {
                let circle: Vec<_> = circle.iter().map(ToString::to_string).collect();
                let message = format!("dependencies in a circle: {}", circle.join(", "));
                let hint = "Flux waits for each of them forever: take one out of `dependsOn`";
                about.error(
                    &DEPENDENCY_CIRCLE,
                    vec![message],
                    place,
                    vec![hint.to_owned()],
                );
            }
            None if lacks_some => {
                let message = format!(
                    "depends on {kind} {}, which may come with what is not built",
                    finding.on
                );
                about.note(&DEPENDENCY_MISSING, vec![message], vec![]);
                let many = "dependencies may come with what is not built";
                about.because(many, Some(String::new()));
            }
            None => {
                let message = format!("depends on {kind} {}, which does not exist", finding.on);
                let hint = "Flux waits for it forever: fix the name or take it out of `dependsOn`";
                about.error(
                    &DEPENDENCY_MISSING,
                    vec![message],
                    place,
                    vec![hint.to_owned()],
                );
                let why = format!("{kind} {}", finding.on);
                about.because("objects depend on one that does not exist", Some(why));
            }
        }
    }
}

/// What was found so far, and the files that it is about.
struct FoundSoFar<'a> {
    files: &'a dyn Vfs,
    /// Whether everything was built that may bring what is missing.
    is_complete: bool,
    findings: Vec<Finding>,
}

/// The problems of one object being found.
struct About<'a, 'files> {
    kind: OwnerKind,
    id: &'a NamespacedName,
    definition: Option<&'a Object>,
    found: &'a mut FoundSoFar<'files>,
}

impl<'a, 'files> About<'a, 'files> {
    fn new(
        kind: OwnerKind,
        id: &'a NamespacedName,
        definition: Option<&'a Object>,
        found: &'a mut FoundSoFar<'files>,
    ) -> Self {
        Self {
            kind,
            id,
            definition,
            found,
        }
    }

    fn kustomization(&mut self, walked: &Walked, index: &Index, report: &Report) {
        let spec = match &walked.spec {
            Ok(spec) => spec,
            Err(errors) => return self.fields(errors),
        };
        self.suspended(spec.suspend);
        if let Some(source) = &walked.unavailable {
            let (rule, message, fetch) = match index.source(source) {
                Some(_) => (
                    &SOURCE_UNAVAILABLE,
                    format!("the files of {source} are not at hand"),
                    "`portolan fetch` brings them, ",
                ),
                None if source.kind == "ExternalArtifact" => (
                    &SOURCE_UNAVAILABLE,
                    format!(
                        "{source} is made in the cluster, by nothing that the repository holds"
                    ),
                    "",
                ),
                None => (
                    &SOURCE_MISSING,
                    format!("{source} does not exist in the repository"),
                    "",
                ),
            };
            let hint = format!("{fetch}`--source {}=DIR` gives its files", source.id);
            let place = self.field(&["spec", "sourceRef", "name"]);
            self.error(rule, vec![message.clone()], place, vec![hint]);
            self.because("Kustomizations lack their source", Some(message));
        }
        for reference in &walked.missing {
            let place = self.entry(&["spec", "postBuild", "substituteFrom"], &reference.name);
            self.missing(reference.kind, &reference.name, place, index);
        }
        if let Some(failure) = walked.unit.as_ref().and_then(|key| failure(report, key)) {
            self.build(failure, spec, index);
        }
        self.unsettled(
            &walked.unsettled,
            "its variables or its definition come from",
        );
        let unset = walked.built.iter().flat_map(|built| &built.unset);
        for (place, variable) in unset.filter(|_| walked.missing.is_empty()) {
            let messages = vec![variable.message.clone(), format!("in `{}`", variable.line)];
            let hint = "give it a default (`${NAME:=value}`), or set it in `postBuild`".to_owned();
            self.error(&UNSET_VARIABLE, messages, Some(place.clone()), vec![hint]);
            let why = variable.name.as_ref().map(|name| format!("`{name}`"));
            self.because("objects use a variable that has no value", why);
        }
    }

    fn build(&mut self, failure: &Failure, spec: &Kustomization, index: &Index) {
        if let Some(SourceError { id, .. }) = failure.error().downcast_ref() {
            let mut hints = advice::from_outside(failure.error());
            hints.push(format!("`--source {}=DIR` gives its files", id.id));
            let place = source_place(id, index, self.found.files);
            self.error(&SOURCE_UNAVAILABLE, chain(failure.error()), place, hints);
            let reason = advice::shared_reason(failure.error());
            return self.because("Kustomizations lack their source", reason);
        }
        let error = failure.error().downcast_ref::<BuildError>();
        let has_no_path = matches!(error, Some(BuildError::Generate(GenerateError::NoPath(_))));
        if has_no_path && is_unknown(&spec.path) {
            let message = "its path holds a variable that only the cluster knows".to_owned();
            let place = self.field(&["spec", "path"]);
            return self.error(&NOT_KNOWN_HERE, vec![message], place, vec![]);
        }
        let reason = advice::shared_reason(failure.error());
        let place = match error {
            Some(BuildError::Generate(GenerateError::NoPath(_))) => self.field(&["spec", "path"]),
            _ => error.and_then(BuildError::place),
        };
        let copy = failure.error().downcast_ref::<CopyError>();
        let place = place.or_else(|| copy?.place.clone());
        // Where the network is missing, the directory is not to blame.
        let hint = error.filter(|_| reason.is_none());
        let made_of = directory_with(&spec.path, self.found.files).filter(|_| has_no_path);
        let hint = hint.map(|error| match &made_of {
            Some(directory) => format!(
                "if {} is made of `{directory}`, which has this path, use `--repo {directory}`",
                spec.source
            ),
            None => advice::on_build(error, spec),
        });
        let hints = hint
            .into_iter()
            .chain(advice::from_outside(failure.error()));
        let messages = chain(failure.error());
        // An artifact that is pushed may be made of a part of the repository; a git repository is never.
        let is_pushed = spec.source.kind != "GitRepository";
        let rule = if reason.is_some() || (is_pushed && made_of.is_some()) {
            &SOURCE_UNAVAILABLE
        } else {
            &BUILD_FAILED
        };
        self.error(rule, messages, place, hints.collect());
        self.because(
            "Kustomizations need remote files that cannot be fetched",
            reason,
        );
    }

    fn expansion(&mut self, emitter: &Emitter, expansion: &Expansion, report: &Report) {
        self.fields(&expansion.errors);
        for name in &expansion.missing {
            let place = self.entry(&["spec", "inputsFrom"], name);
            let namespace = &emitter.id().namespace;
            let message = format!(
                "ResourceSetInputProvider {namespace}/{name} does not exist in the repository"
            );
            let hint = "add it to what Flux applies, or fix the name in `inputsFrom`".to_owned();
            self.error(&MISSING_INPUTS, vec![message], place, vec![hint]);
        }
        for provider in &expansion.outside {
            let message = format!(
                "ResourceSetInputProvider {provider} asks a service: its inputs are not known here"
            );
            let hint =
                "`status.exportedInputs` of the provider is used when it is there".to_owned();
            self.note(&OUTSIDE_INPUTS, vec![message], vec![hint]);
        }
        if expansion.is_unsettled {
            self.unsettled(&["an input".to_owned()], "it is made of");
        }
        if let Some(failure) = expansion.unit.as_ref().and_then(|key| failure(report, key)) {
            let own = failure.error().downcast_ref::<ResourceSetError>();
            let hint = own.map(|error| advice::on_resource_set(error).to_owned());
            let messages = chain(failure.error());
            let place = messages
                .first()
                .and_then(|message| self.template_line(message));
            self.error(&BUILD_FAILED, messages, place, hint.into_iter().collect());
        }
    }

    /// The first line of the object's templates that holds what a message quotes.
    fn template_line(&self, message: &str) -> Option<Place> {
        let begins = self.definition?.place()?;
        let text = self
            .found
            .files
            .read(Utf8Path::new(begins.file.as_str()))
            .ok()?;
        let text = String::from_utf8_lossy(&text);
        let quoted: Vec<&str> = message.split('"').skip(1).step_by(2).collect();
        let above = begins.at.line.saturating_sub(1) as usize;
        let mut lines = text.lines().enumerate().skip(above);
        let (index, line) = lines.find(|(_, line)| {
            let template = line.split_once("<<").map_or("", |(_, rest)| rest);
            quoted
                .iter()
                .any(|word| !word.is_empty() && template.contains(word))
        })?;
        let column = line.find("<<").unwrap_or_default() + 1;
        let at = Position {
            line: u32::try_from(index + 1).ok()?,
            column: u32::try_from(column).ok()?,
        };
        Some(Place::new(begins.file.clone(), at))
    }

    fn release(&mut self, release: &RenderedRelease, index: &Index, report: &Report) {
        let spec = match &release.spec {
            Ok(spec) => spec,
            Err(errors) => return self.fields(errors),
        };
        self.suspended(spec.suspend);
        for reference in &release.composed.missing {
            let place = self.entry(&["spec", "valuesFrom"], &reference.name);
            self.missing(reference.kind, &reference.name, place, index);
        }
        for error in &release.composed.errors {
            let place = self.entry(&["spec", "valuesFrom"], error.name());
            let hint =
                "fix the key in the object, or `valuesKey` and `targetPath` of the reference";
            let messages = vec![error.to_string()];
            self.error(&BAD_VALUES, messages, place, vec![hint.to_owned()]);
        }
        if let Some(error) = &release.chart_error {
            self.chart(error, chain(error), spec, index);
        }
        self.unsettled(&release.unsettled, "others are made of");
        for refusal in &release.refusals {
            let message = format!("Helm takes the release, Flux will not: {refusal}");
            self.note(&RELEASE_REFUSED, vec![message], vec![]);
        }
        if let Some(failure) = release.unit.as_ref().and_then(|key| failure(report, key)) {
            let messages = chain(failure.error());
            match failure.error().downcast_ref::<ChartError>() {
                Some(error) => self.chart(error, messages, spec, index),
                None => self.release_failure(failure, messages, release, index),
            }
        }
    }

    /// A failure of something the release is made of, or its own.
    fn release_failure(
        &mut self,
        failure: &Failure,
        messages: Vec<String>,
        release: &RenderedRelease,
        index: &Index,
    ) {
        let source = failure.error().downcast_ref::<SourceError>();
        let reason = advice::shared_reason(failure.error());
        let own = failure.error().downcast_ref::<ReleaseError>();
        let (rule, many) = match (source, own) {
            (Some(_), _) => (&SOURCE_UNAVAILABLE, "charts cannot be fetched"),
            (None, Some(_)) if reason.is_some() => (
                &CHART_UNAVAILABLE,
                "charts need remote files that cannot be fetched",
            ),
            (None, _) => (&BUILD_FAILED, "charts cannot be fetched"),
        };
        let place = source.and_then(|error| source_place(&error.id, index, self.found.files));
        let place = place.or_else(|| self.refused_value(own?, release, index));
        let place = place.or_else(|| template_place(own?, release));
        let whole = release.composed.whole_unknown.first();
        if let Some(reference) = whole.filter(|_| own.is_some_and(ReleaseError::may_be_of_values)) {
            let kind = reference.kind.as_str();
            let namespace = &self.id.namespace;
            let name = &reference.name;
            let lacking = format!(
                "cannot be rendered without the values in {kind} {namespace}/{name}, which are not known here"
            );
            let messages = [lacking].into_iter().chain(messages).collect();
            return self.error(&NOT_KNOWN_HERE, messages, place, vec![]);
        }
        let hint = own.filter(|_| reason.is_none());
        let hint = hint.map(|error| advice::on_release(error).to_owned());
        let hints = hint
            .into_iter()
            .chain(advice::from_outside(failure.error()));
        self.error(rule, messages, place, hints.collect());
        self.because(many, reason);
    }

    /// Where the value is written that the chart's schema refuses.
    fn refused_value(
        &self,
        error: &ReleaseError,
        release: &RenderedRelease,
        index: &Index,
    ) -> Option<Place> {
        let own = refused_value::in_release(error, &release.definition);
        let own = own.and_then(|node| self.place(node.at, node.as_str().unwrap_or_default()));
        own.or_else(|| refused_value::in_references(error, release, index, self.found.files))
    }

    fn chart(
        &mut self,
        error: &ChartError,
        mut messages: Vec<String>,
        spec: &HelmRelease,
        index: &Index,
    ) {
        // Whoever could not fetch the chart usually names it: once is enough.
        let is_fetching = matches!(error, ChartError::Fetch { .. });
        if is_fetching && messages.get(1).is_some_and(|why| why.contains("chart `")) {
            messages.remove(0);
        }
        let is_source = matches!(
            error,
            ChartError::NoSource(_) | ChartError::WrongKind(_) | ChartError::Unavailable(_)
        );
        let fetched_from = chart::source_of(spec, index).ok();
        let fetched_from = fetched_from.filter(|_| is_fetching);
        let source =
            fetched_from.and_then(|source| source_place(&source.id, index, self.found.files));
        let place = match (&spec.chart, is_source) {
            _ if source.is_some() => source,
            (Chart::Reference(_), _) => self.field(&["spec", "chartRef", "name"]),
            (Chart::Spec(_), true) => self.field(&["spec", "chart", "spec", "sourceRef", "name"]),
            (Chart::Spec(_), false) => self.field(&["spec", "chart", "spec", "chart"]),
        };
        let hint = advice::on_chart(error).into_iter();
        let hints = hint.chain(advice::from_outside(error));
        self.error(chart_rule(error), messages, place, hints.collect());
        match error {
            ChartError::NoSource(source) => {
                let why = format!("{source} does not exist in the repository");
                self.because("charts have no source", Some(why));
            }
            _ => self.because("charts cannot be fetched", advice::shared_reason(error)),
        }
    }

    fn fields(&mut self, errors: &[FieldError]) {
        for error in errors {
            let place = self.place(error.at, "");
            let hint = advice::FIELD.to_owned();
            self.error(&INVALID_FIELD, vec![error.to_string()], place, vec![hint]);
        }
    }

    /// What changes with every build has no end: the last one that was tried is not what Flux would end with.
    fn unsettled(&mut self, changing: &[String], role: &str) {
        if changing.is_empty() {
            return;
        }
        let changing = changing.join(", ");
        let messages = vec![
            "does not come to rest: what it gives changes what it is made of, again and again"
                .to_owned(),
            format!("still changing after the last attempt: {changing}, which {role}"),
        ];
        let hint = "Flux would apply something else on every reconciliation: let nothing be made of what it makes itself";
        self.error(&UNSETTLED, messages, None, vec![hint.to_owned()]);
    }

    fn suspended(&mut self, is_suspended: bool) {
        if is_suspended {
            let message = "suspended: Flux does not apply changes".to_owned();
            self.note(&SUSPENDED, vec![message], vec![]);
            let many = "objects are suspended: Flux does not apply changes";
            self.because(many, Some(String::new()));
        }
    }

    /// Data that nothing emits: a note when something in the repository makes it in the cluster.
    fn missing(&mut self, kind: DataKind, name: &str, place: Option<Place>, index: &Index) {
        let namespace = &self.id.namespace;
        let message = format!("missing {} {namespace}/{name}", kind.as_str());
        let why = format!("{} {namespace}/{name} does not exist", kind.as_str());
        match index.producer(namespace, name) {
            Some(producer) => {
                let producer = producer.id().title();
                let message = format!("{message}: {producer} makes it in the cluster");
                self.note(&MISSING_DATA, vec![message], vec![]);
                self.because(MADE_IN_CLUSTER, Some(String::new()));
            }
            // Many Secrets are made by hand, or by what sets the cluster up: that one is missing is not known.
            None if kind == DataKind::Secret => {
                let messages = vec![message, "nothing in the repository makes it".to_owned()];
                self.add(&MISSING_DATA, Severity::Note, messages, place, vec![]);
                let many = "objects need Secrets that nothing in the repository makes";
                self.because(many, Some(String::new()));
            }
            None if !self.found.is_complete => {
                let messages = vec![message, "it may come with what is not built".to_owned()];
                self.note(&MISSING_DATA, messages, vec![]);
                let many = "objects need data that may come with what is not built";
                self.because(many, Some(String::new()));
            }
            None => {
                let hint = "mark the reference `optional: true` if it may be missing".to_owned();
                self.error(&MISSING_DATA, vec![message], place, vec![hint]);
                self.because("objects need data that is missing", Some(why));
            }
        }
    }

    /// Says what the finding just added has in common with others, if there is something.
    fn because(&mut self, many: &'static str, why: Option<String>) {
        if let (Some(last), Some(why)) = (self.found.findings.last_mut(), why) {
            last.cause = Some(Cause { many, why });
        }
    }

    fn error(
        &mut self,
        rule: &'static Rule,
        messages: Vec<String>,
        place: Option<Place>,
        hints: Vec<String>,
    ) {
        self.add(rule, Severity::Error, messages, place, hints);
    }

    fn note(&mut self, rule: &'static Rule, messages: Vec<String>, hints: Vec<String>) {
        self.add(rule, Severity::Note, messages, None, hints);
    }

    fn add(
        &mut self,
        rule: &'static Rule,
        severity: Severity,
        messages: Vec<String>,
        place: Option<Place>,
        hints: Vec<String>,
    ) {
        let origin = self.definition.map(Object::origin);
        let declared = origin.as_ref().and_then(declared);
        let NamespacedName { namespace, name } = self.id.clone();
        self.found.findings.push(Finding {
            severity,
            owner: Some(Owner::new(self.kind, namespace, name)),
            messages,
            place: place.or_else(|| declared.cloned()),
            hints,
            ..Finding::new(rule, "")
        });
    }

    /// The place of a field of the object.
    fn field(&self, path: &[&str]) -> Option<Place> {
        let field = self.definition?.node().at_path(path)?;
        self.place(field.at, field.as_str().unwrap_or_default())
    }

    /// The place of the item with this name in a list of the object.
    fn entry(&self, path: &[&str], name: &str) -> Option<Place> {
        let list = self.definition?.node().at_path(path)?.as_list()?;
        let named = |item: &&Node| item.get("name").and_then(Node::as_str) == Some(name);
        let item = list.iter().find(named)?;
        self.place(item.get("name")?.at, name)
    }

    /// A place in the object's file, if a word stands there: what a patch brought stands elsewhere.
    fn place(&self, at: Position, word: &str) -> Option<Place> {
        written_here(self.definition?, at, word, self.found.files)
    }
}

/// Where an object is declared: the template that made it, or where it stands.
fn declared(origin: &Origin) -> Option<&Place> {
    let mut steps = origin.newest_first();
    let template = steps.find(|step| step.act == Act::Template && step.place.is_some());
    let template = template.and_then(|step| step.place.as_ref());
    template.or_else(|| origin.place())
}

/// The line of the chart's template that failed, where the chart lies in the repository.
fn template_place(error: &ReleaseError, release: &RenderedRelease) -> Option<Place> {
    let chart = release.chart.as_ref()?;
    let place = match error {
        ReleaseError::NotYaml { place, .. } => place.clone(),
        ReleaseError::Template { source, .. } => {
            let portolan_helm::Error::Template(failed) = source.as_ref() else {
                return None;
            };
            let (file, line, column) = failed.place()?;
            // Go counts columns from 0.
            let column = column + 1;
            chart.place(file, Position { line, column })
        }
        ReleaseError::PostRenderer { .. } | ReleaseError::Schema { .. } => return None,
    };
    place.file.starts_with('/').then_some(place)
}

/// The only directory of the repository that a path leads from: an artifact is often made of a part of the repository.
fn directory_with(path: &str, files: &dyn Vfs) -> Option<String> {
    let entries = files.list(Utf8Path::new("/")).ok()?;
    let directories = entries.into_iter().filter(|entry| {
        let directory = Utf8Path::new("/").join(&entry.name);
        files.is_directory(&resolve(&directory, path.trim_start_matches('/')))
    });
    let mut names = directories.map(|entry| entry.name);
    names.next().filter(|_| names.next().is_none())
}

/// The rule of a chart that cannot be had or used.
fn chart_rule(error: &ChartError) -> &'static Rule {
    match error {
        ChartError::NoSource(_) => &SOURCE_MISSING,
        ChartError::Unavailable(_) | ChartError::NotCached(_) | ChartError::Fetch { .. } => {
            &CHART_UNAVAILABLE
        }
        ChartError::WrongKind(_)
        | ChartError::Load { .. }
        | ChartError::NoDependency { .. }
        | ChartError::WrongDependency { .. }
        | ChartError::ValuesFile { .. }
        | ChartError::InvalidVersion(_)
        | ChartError::OtherVersion { .. } => &CHART_INVALID,
    }
}

/// Whether a text holds a variable or a value that only the cluster knows.
fn is_unknown(text: &str) -> bool {
    holds_placeholder(text) || text.contains("${")
}

/// Why a unit was not done: its own failure, or that of the unit because of which it was skipped.
fn failure<'a>(report: &'a Report, key: &Key) -> Option<&'a Failure> {
    match &report.get(key)?.outcome {
        Outcome::Failed(failure) => Some(failure),
        Outcome::Skipped { because } => match &report.get(because)?.outcome {
            Outcome::Failed(failure) => Some(failure),
            _ => None,
        },
        _ => None,
    }
}

/// Where a source says what is fetched: its reference or version, its address, or where it begins.
fn source_place(source: &SourceRef, index: &Index, files: &dyn Vfs) -> Option<Place> {
    let (_, object) = index.named(SOURCE_GROUP, &source.kind, &source.id)?;
    let begins = object.place()?;
    let fields: [&[&str]; 3] = [&["spec", "ref"], &["spec", "url"], &["spec", "endpoint"]];
    let written = fields
        .into_iter()
        .find_map(|path| object.node().at_path(path));
    let stands_there = |node: &&Node| {
        let text = files.read(Utf8Path::new(begins.file.as_str()));
        let text = text.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let line = (node.at.line as usize).checked_sub(1);
        let line = line.and_then(|line| text.lines().nth(line));
        let map = node.as_map().and_then(|map| map.iter().next());
        let word = map.map_or(node.as_str(), |entry| Some(entry.key.as_str()));
        // What a ResourceSet or a chart makes has lines of its own.
        line.zip(word)
            .is_some_and(|(line, word)| line.contains(word))
    };
    let written = written.filter(|node| node.at.line > begins.at.line);
    Some(match written.filter(stands_there) {
        Some(node) => Place::new(begins.file.clone(), node.at),
        None => begins.clone(),
    })
}

/// An error and its causes, one sentence each.
fn chain(error: &(dyn Error + 'static)) -> Vec<String> {
    let mut messages: Vec<String> = causes(error).map(ToString::to_string).collect();
    // That a file cannot be read is said again by the cause that names it.
    let repeats = |one: &str, next: &str| {
        let file = one.strip_prefix("cannot read ");
        file.is_some_and(|file| next.contains(file))
    };
    let mut at = 0;
    while at + 1 < messages.len() {
        if repeats(&messages[at], &messages[at + 1]) {
            messages.remove(at);
        } else {
            at += 1;
        }
    }
    messages
}
