//! Values checked against a compiled schema.
//!
//! ```text
//! subschema, value ──▶ own rules ──▶ references, combinations ──▶ what nothing else looked at
//!                          └──────────────────┴───▶ failures of this subschema, a tree
//! ```
//!
//! Failures of an object's properties come in the order of their names; the library that Helm 4 uses has no order.

mod list;
mod object;
mod scalar;
mod unevaluated;

use std::fmt::Write;

use portolan_budget::{Budget, Exceeded};
use portolan_gotmpl::Value;

use super::super::progress::Progress;
use super::super::subschema::Id;
use super::compile::{Node, Schema};
use super::document::escaped;
use super::draft::Draft;
use super::failure::{Failure, Rule};
use unevaluated::Unevaluated;

/// How deep values may nest, and how many schemas may lead to each other for one value.
const MAX_DEPTH: usize = 250;

impl Schema {
    /// Everything that is wrong with a value.
    pub(super) fn check(&self, value: &Value, budget: &Budget) -> Result<Vec<Failure>, Exceeded> {
        let progress = Progress::new(budget);
        let mut checker = Checker {
            schema: self,
            path: Vec::new(),
            progress: &progress,
        };
        let scope = Scope {
            id: self.root,
            keyword: None,
            value: 0,
            depth: 0,
            above: None,
        };
        let mut work = Work::new(self, self.root, value, &scope, false, false);
        let failures = match checker.apply(&mut work) {
            Ok(()) => Vec::new(),
            Err(failure) => failure.into_causes(),
        };
        progress.finish(failures)
    }
}

/// Applies subschemas to values.
struct Checker<'s> {
    schema: &'s Schema,
    /// The way to the value that is looked at.
    path: Vec<String>,
    progress: &'s Progress<'s>,
}

/// How a subschema was reached: a chain of stack frames.
struct Scope<'c> {
    id: Id,
    /// The keyword of the reference that led here.
    keyword: Option<&'static str>,
    /// How deep the value lies; schemas of the same depth see the same value.
    value: usize,
    depth: usize,
    above: Option<&'c Self>,
}

/// One subschema at work on one value.
struct Work<'w> {
    node: &'w Node,
    value: &'w Value,
    scope: &'w Scope<'w>,
    /// What no rule has looked at so far, where somebody wants to know.
    unevaluated: Unevaluated,
    /// Nobody reads the failures, so the first will do.
    quiet: bool,
    failures: Vec<Failure>,
}

impl<'w> Work<'w> {
    fn new(
        schema: &'w Schema,
        id: Id,
        value: &'w Value,
        scope: &'w Scope<'w>,
        wanted: bool,
        quiet: bool,
    ) -> Self {
        let node = schema.node(id);
        Self {
            node,
            value,
            scope,
            unevaluated: Unevaluated::of(value, node, wanted),
            quiet,
            failures: Vec::new(),
        }
    }

    fn is_settled(&self) -> bool {
        self.quiet && !self.failures.is_empty()
    }
}

impl Checker<'_> {
    /// Applies the subschema; what is left in `unevaluated` then nothing has looked at.
    fn apply(&mut self, work: &mut Work<'_>) -> Result<(), Failure> {
        if !self.progress.goes_on() {
            return Ok(());
        }
        if work.scope.depth > MAX_DEPTH {
            return Err(self.failure(work, "values or schema are nested too deep"));
        }
        if let Some(pass) = work.node.pass {
            return if pass {
                Ok(())
            } else {
                Err(self.failure(work, "false schema"))
            };
        }
        self.check_circle(work)?;
        self.check_whole(work)?;
        if let Some(reference) = work.node.reference {
            let referred = self.refer(work, reference, "$ref");
            if work.node.draft.reference_stands_alone() {
                return referred;
            }
            work.failures.extend(referred.err());
        }
        self.check_parts(work);
        if !work.is_settled() {
            self.check_references(work);
            self.check_combinations(work);
            if work.node.draft >= Draft::Of2019 {
                self.check_unevaluated(work);
            }
        }
        self.conclude(work)
    }

    fn conclude(&self, work: &mut Work<'_>) -> Result<(), Failure> {
        let mut failures = std::mem::take(&mut work.failures);
        match failures.len() {
            0 => Ok(()),
            1 => Err(failures.remove(0)),
            _ => Err(Failure {
                at: self.pointer(),
                rule: Rule::Several,
                causes: failures,
            }),
        }
    }

    /// Schemas that refer to each other without looking deeper into the value would never end.
    fn check_circle(&self, work: &Work<'_>) -> Result<(), Failure> {
        let same_value = |scope: &&Scope<'_>| scope.value == work.scope.value;
        let mut above = std::iter::successors(work.scope.above, |scope| scope.above);
        let above = above.by_ref().take_while(same_value);
        let Some(earlier) = above.into_iter().find(|scope| scope.id == work.scope.id) else {
            return Ok(());
        };
        let (here, there) = (self.way(work.scope), self.way(earlier));
        let (document, pointer) = (&work.node.document, &work.node.pointer);
        let told = format!(
            "both {here} and {there} resolve to \"{document}#{pointer}\" causing reference cycle"
        );
        Err(self.failure(work, told))
    }

    /// The keywords that led to a subschema.
    fn way(&self, scope: &Scope<'_>) -> String {
        let Some(above) = scope.above else {
            return String::new();
        };
        let mut way = self.way(above);
        match scope.keyword {
            Some(keyword) => {
                let _ = write!(way, "/{keyword}");
            }
            None => {
                let own = &self.schema.node(scope.id).pointer;
                let outer = &self.schema.node(above.id).pointer;
                way.push_str(own.get(outer.len()..).unwrap_or_default());
            }
        }
        way
    }

    fn check_parts(&mut self, work: &mut Work<'_>) {
        match work.value {
            Value::Map(map) => self.check_object(work, map),
            Value::List(items) => self.check_list(work, items),
            Value::Str(text) => self.check_text(work, text),
            value => {
                if let Some(number) = scalar::number_of(value) {
                    self.check_number(work, number);
                }
            }
        }
    }

    /// `$recursiveRef` and `$dynamicRef`, which lead to the outermost schema that answers to them.
    fn check_references(&mut self, work: &mut Work<'_>) {
        let schema = self.schema;
        let scope = work.scope;
        let scopes = || std::iter::successors(Some(scope), |scope| scope.above);
        if let Some(target) = work.node.recursive_reference {
            let is_anchor = |scope: &&Scope<'_>| {
                let resource = schema.node(scope.id).resource;
                schema.node(resource).recursive_anchor
            };
            let outermost = scopes().filter(is_anchor).last().map(|scope| scope.id);
            let outermost = outermost.filter(|_| schema.node(target).recursive_anchor);
            let referred = self.refer(work, outermost.unwrap_or(target), "$recursiveRef");
            work.failures.extend(referred.err());
        }
        if let Some(reference) = &work.node.dynamic_reference {
            let target = schema.node(reference.target);
            let anchor = reference.anchor.as_ref();
            let anchor = anchor.filter(|anchor| target.dynamic_anchor.as_ref() == Some(*anchor));
            let answers = |scope: &Scope<'_>| {
                let resource = schema.node(schema.node(scope.id).resource);
                let mut anchors = resource.dynamic_anchors.iter();
                let found = anchors.find(|(name, _)| Some(name) == anchor)?;
                Some(found.1)
            };
            let outermost = scopes().filter_map(answers).last();
            let target = outermost.unwrap_or(reference.target);
            let referred = self.refer(work, target, "$dynamicRef");
            work.failures.extend(referred.err());
        }
    }

    fn check_combinations(&mut self, work: &mut Work<'_>) {
        let node = work.node;
        if let Some(not) = node.not
            && self.same(work, not, true).is_ok()
        {
            self.fail(work, "'not' failed");
        }
        if !node.all_of.is_empty() {
            let failures = self.failures_of(work, &node.all_of);
            if !failures.is_empty() {
                self.fail_because(work, "'allOf' failed", failures);
            }
        }
        if !node.any_of.is_empty() {
            self.check_any(work);
        }
        if !node.one_of.is_empty() {
            self.check_one(work);
        }
        if let Some(condition) = &node.condition {
            let branch = match self.same(work, condition.test, true) {
                Ok(()) => condition.then,
                Err(_) => condition.otherwise,
            };
            if let Some(branch) = branch {
                let failure = self.same(work, branch, false).err();
                work.failures.extend(failure);
            }
        }
    }

    fn failures_of(&mut self, work: &mut Work<'_>, schemas: &[Id]) -> Vec<Failure> {
        let mut failures = Vec::new();
        for schema in schemas {
            failures.extend(self.same(work, *schema, false).err());
            if work.quiet && !failures.is_empty() {
                break;
            }
        }
        failures
    }

    fn check_any(&mut self, work: &mut Work<'_>) {
        let mut fits = false;
        let mut failures = Vec::new();
        for schema in &work.node.any_of {
            match self.same(work, *schema, false) {
                Err(failure) => failures.push(failure),
                Ok(()) => {
                    fits = true;
                    // All that fit count for what is still to be evaluated.
                    if work.unevaluated.is_empty() {
                        break;
                    }
                }
            }
        }
        if !fits {
            self.fail_because(work, "'anyOf' failed", failures);
        }
    }

    fn check_one(&mut self, work: &mut Work<'_>) {
        let mut fitting = None;
        let mut failures = Vec::new();
        for (index, schema) in work.node.one_of.iter().enumerate() {
            match (self.same(work, *schema, fitting.is_some()), fitting) {
                (Err(failure), None) => failures.push(failure),
                (Err(_), Some(_)) => {}
                (Ok(()), None) => fitting = Some(index),
                (Ok(()), Some(first)) => {
                    let told = format!("'oneOf' failed, subschemas {first}, {index} matched");
                    self.fail(work, told);
                    break;
                }
            }
        }
        if fitting.is_none() {
            self.fail_because(work, "'oneOf' failed, none matched", failures);
        }
    }

    /// Applies another subschema to the same value.
    fn same(&mut self, work: &mut Work<'_>, id: Id, quiet: bool) -> Result<(), Failure> {
        self.same_by(work, id, None, quiet)
    }

    fn same_by(
        &mut self,
        work: &mut Work<'_>,
        id: Id,
        keyword: Option<&'static str>,
        quiet: bool,
    ) -> Result<(), Failure> {
        let scope = Scope {
            id,
            keyword,
            value: work.scope.value,
            depth: work.scope.depth + 1,
            above: Some(work.scope),
        };
        let wanted = !work.unevaluated.is_empty();
        let quiet = quiet || work.quiet;
        let mut inner = Work::new(self.schema, id, work.value, &scope, wanted, quiet);
        self.apply(&mut inner)?;
        work.unevaluated.keep_common(&inner.unevaluated);
        Ok(())
    }

    /// Applies the subschema that a reference leads to.
    fn refer(&mut self, work: &mut Work<'_>, id: Id, keyword: &'static str) -> Result<(), Failure> {
        let referred = self.same_by(work, id, Some(keyword), false);
        referred.map_err(|failure| Failure {
            at: self.pointer(),
            rule: Rule::Referred,
            causes: failure.into_causes(),
        })
    }

    /// Applies a subschema to a part of the value.
    fn below(&mut self, work: &Work<'_>, id: Id, value: &Value, name: &str) -> Result<(), Failure> {
        let scope = Scope {
            id,
            keyword: None,
            value: work.scope.value + 1,
            depth: work.scope.depth + 1,
            above: Some(work.scope),
        };
        self.path.push(name.to_owned());
        let mut inner = Work::new(self.schema, id, value, &scope, false, work.quiet);
        let applied = self.apply(&mut inner);
        self.path.pop();
        applied
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for part in &self.path {
            pointer.push('/');
            pointer.push_str(&escaped(part));
        }
        pointer
    }

    fn failure(&self, work: &Work<'_>, told: impl Into<String>) -> Failure {
        if work.quiet {
            return Failure::default();
        }
        Failure {
            at: self.pointer(),
            rule: Rule::Told(told.into()),
            causes: Vec::new(),
        }
    }

    fn fail(&self, work: &mut Work<'_>, told: impl Into<String>) {
        let failure = self.failure(work, told);
        work.failures.push(failure);
    }

    fn fail_because(&self, work: &mut Work<'_>, told: &str, causes: Vec<Failure>) {
        let failure = self.failure(work, told);
        work.failures.push(Failure { causes, ..failure });
    }
}
