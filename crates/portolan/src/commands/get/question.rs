//! What a user asks about a rendered repository, and what every list of `portolan get` has in common.

use portolan_object::{Candidate, KindNames, NoMatch, Noun, ObjectSelection};
use portolan_review::{RenderedRepository, inventory};

use crate::error::CommandError;
use crate::listing::Column;
use crate::secret::RepositoryView;
use crate::table::Cell;

/// What a listing is made from.
pub(super) struct Question<'a> {
    /// The names as they were written.
    pub(super) names: Vec<String>,
    pub(super) selection: ObjectSelection,
    pub(super) kinds: KindNames,
    pub(super) view: RepositoryView,
    pub(super) rendered: &'a RenderedRepository,
}

impl Question<'_> {
    /// The things that are meant; refuses what none of them has.
    pub(super) fn chosen<'c, T>(
        &self,
        noun: Noun,
        things: Vec<(Candidate<'c>, T)>,
    ) -> Result<Vec<T>, CommandError> {
        let candidates: Vec<Candidate<'c>> = things.iter().map(|(one, _)| one.clone()).collect();
        if let Some(wanted) = &self.selection.namespace {
            let is_there = |one: &Candidate<'_>| one.namespace == wanted;
            if !candidates.iter().any(is_there) {
                let known = inventory::namespaces(self.rendered);
                let refused = if known.iter().any(|known| known == wanted) {
                    let own = candidates.iter().map(|one| one.namespace);
                    let refused = NoMatch::namespace(noun, wanted, own);
                    let near = refused.hint().unwrap_or_default().to_owned();
                    let command = format!("`portolan get objects -n {wanted}`");
                    refused.with_hint(format!("{near} {command} lists what else lies there"))
                } else {
                    NoMatch::namespace(noun, wanted, known.iter().map(String::as_str))
                };
                return Err(refused.into());
            }
        }
        self.selection.check(&self.kinds, noun, &candidates)?;
        let is_meant = |(one, _): &(Candidate<'c>, T)| self.selection.selects(&self.kinds, one);
        let chosen = things.into_iter().filter(is_meant);
        Ok(chosen.map(|(_, thing)| thing).collect())
    }

    /// Refuses names that nothing has.
    pub(super) fn refuse_unknown_names(
        &self,
        noun: Noun,
        is_known: impl Fn(&str) -> bool,
        known: &[String],
    ) -> Result<(), CommandError> {
        let missing = self.names.iter().filter(|name| !is_known(name));
        let missing: Vec<&String> = missing.collect();
        if missing.is_empty() {
            return Ok(());
        }
        let known = known.iter().map(|name| ("", name.as_str()));
        Err(NoMatch::names(noun, &missing, known).into())
    }

    /// A cluster column when there are several, and a namespace column unless one is asked for; then the others.
    pub(super) fn columns(&self, namespaced: bool, others: &[Column]) -> Vec<Column> {
        let mut columns = Vec::new();
        if self.rendered.clusters.len() > 1 {
            columns.push(Column::Always("CLUSTER"));
        }
        if namespaced && self.selection.namespace.is_none() {
            columns.push(Column::Always("NAMESPACE"));
        }
        columns.extend(others);
        columns
    }

    /// The cells for [`Self::columns`].
    pub(super) fn cells(
        &self,
        cluster: &str,
        namespace: Option<&str>,
        others: Vec<Cell>,
    ) -> Vec<Cell> {
        let mut cells = Vec::new();
        if self.rendered.clusters.len() > 1 {
            cells.push(Cell::whole(cluster));
        }
        if let Some(namespace) = namespace.filter(|_| self.selection.namespace.is_none()) {
            cells.push(Cell::whole(namespace));
        }
        cells.extend(others);
        cells
    }
}

/// `True` or `False`, as kubectl prints conditions.
pub(super) fn truth(value: bool) -> Cell {
    Cell::from(if value { "True" } else { "False" })
}

/// How many users a table names; the wide form names all of them.
const NAMED_USERS: usize = 2;

/// `a, b and 3 more`
pub(super) fn some_of(users: &[String]) -> String {
    let named = users.iter().take(NAMED_USERS);
    let named = named.map(String::as_str).collect::<Vec<_>>().join(", ");
    match users.len().saturating_sub(NAMED_USERS) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
