//! Lists in pages, all of them at one revision.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use portolan_kinds::KindDefinition;
use portolan_store::{Incarnation, Position, Range, Record, Revision, Span, Store};

use crate::error::ApiError;
use crate::field_selector::ObjectFilter;
use crate::keys::{ObjectKey, collection};
use crate::record::StoredKind;

/// The objects of a page when the caller does not say how many, and at most.
pub(crate) const MAX_OBJECTS: usize = 500;

/// Records that one page looks at; a selector that matches little gives short pages.
pub(crate) const MAX_SCANNED: usize = 20_000;

/// Which objects are listed.
#[derive(Debug, Clone)]
pub(crate) struct ListQuery {
    pub(crate) kind: &'static KindDefinition,
    /// `None` for all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) filter: ObjectFilter,
    pub(crate) limit: usize,
    /// Where the page before ended.
    pub(crate) resume: Option<PageToken>,
}

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageToken {
    position: Position,
    after: String,
}

/// Some objects.
#[derive(Debug, Clone)]
pub(crate) struct ObjectPage {
    pub(crate) objects: Vec<StoredKind>,
    /// The revision that all pages are read at.
    pub(crate) revision: Revision,
    /// `None` on the last page.
    pub(crate) next: Option<PageToken>,
}

impl PageToken {
    /// Reads what [`PageToken::to_text`] wrote.
    pub(crate) fn read(text: &str, query: &str) -> Result<Self, ApiError> {
        let wrong = || ApiError::bad_request("`continue` is not from an answer to this list");
        let (position, after) = text.split_once('~').ok_or_else(wrong)?;
        let after = URL_SAFE_NO_PAD.decode(after).ok();
        let after = after
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .ok_or_else(wrong)?;
        if !after.starts_with(query) {
            return Err(wrong());
        }
        Ok(Self {
            position: position.parse().map_err(|_| wrong())?,
            after,
        })
    }

    /// A place in a list that is read at a revision: after something.
    pub(crate) fn new(incarnation: &Incarnation, revision: Revision, after: String) -> Self {
        Self {
            position: Position {
                incarnation: incarnation.number,
                revision,
            },
            after,
        }
    }

    /// The revision that the list is read at.
    pub(crate) fn revision(&self, incarnation: &Incarnation) -> Result<Revision, ApiError> {
        Ok(self.position.revision_in(incarnation)?)
    }

    /// What the page before ended with.
    pub(crate) fn after(&self) -> &str {
        &self.after
    }

    /// An opaque text.
    pub(crate) fn to_text(&self) -> String {
        format!("{}~{}", self.position, URL_SAFE_NO_PAD.encode(&self.after))
    }
}

/// Reads a page.
pub(crate) async fn list(
    store: &Store,
    incarnation: &Incarnation,
    query: &ListQuery,
) -> Result<ObjectPage, ApiError> {
    let prefix = collection(query.kind, query.namespace.as_deref());
    let mut range = Range::new(Span::prefix(prefix));
    if let Some(token) = &query.resume {
        range.at = Some(token.revision(incarnation)?);
        range.span = range
            .span
            .after(format!("{}\u{ff}", token.after).as_bytes());
    }
    let limit = query.limit.clamp(1, MAX_OBJECTS);
    let mut page = ObjectPage {
        objects: Vec::new(),
        revision: 0,
        next: None,
    };
    let mut scanned = 0;
    // The records of an object that may go on in the next range.
    let mut open: Vec<Record> = Vec::new();
    let mut last: Option<String> = None;
    loop {
        let read = store.range(range.clone()).await?;
        page.revision = *range.at.get_or_insert(read.revision);
        scanned += read.records.len();
        let end = read.records.last().map(|record| record.key.clone());
        for record in read.records {
            let prefix = prefix_of(&record);
            if open.first().is_some_and(|first| prefix_of(first) != prefix) {
                take(&mut open, &mut page, query, incarnation, &mut last)?;
                if page.objects.len() >= limit {
                    return Ok(ended(page, last, incarnation));
                }
            }
            open.push(record);
        }
        match end {
            Some(end) if read.more && scanned < MAX_SCANNED => range.span = range.span.after(&end),
            Some(_) if read.more => return Ok(ended(page, last, incarnation)),
            _ => break,
        }
    }
    take(&mut open, &mut page, query, incarnation, &mut last)?;
    Ok(page)
}

fn take(
    open: &mut Vec<Record>,
    page: &mut ObjectPage,
    query: &ListQuery,
    incarnation: &Incarnation,
    last: &mut Option<String>,
) -> Result<(), ApiError> {
    let Some(first) = open.first() else {
        return Ok(());
    };
    *last = Some(String::from_utf8_lossy(prefix_of(first)).into_owned());
    if let Some(found) = StoredKind::read(open, incarnation)?
        && query.filter.matches(&found.object)
    {
        page.objects.push(found);
    }
    open.clear();
    Ok(())
}

fn ended(mut page: ObjectPage, last: Option<String>, incarnation: &Incarnation) -> ObjectPage {
    page.next = last.map(|after| PageToken::new(incarnation, page.revision, after));
    page
}

/// `…/<name>/`
fn prefix_of(record: &Record) -> &[u8] {
    let end = record.key.iter().rposition(|byte| *byte == b'/');
    end.map_or(&record.key[..], |end| &record.key[..=end])
}

/// One object as it is now, or as it was at a revision.
pub(crate) async fn get(
    store: &Store,
    incarnation: &Incarnation,
    key: &ObjectKey,
    at: Option<Revision>,
) -> Result<Option<StoredKind>, ApiError> {
    let mut range = Range::new(Span::prefix(key.prefix().to_owned())).limit(2);
    range.at = at;
    let page = store.range(range).await?;
    Ok(StoredKind::read(&page.records, incarnation)?)
}
