//! Pages of events: records are read in the order of time and unpacked; a page may end within a record.

use portolan_store::{Range, Record, Span};

use super::unpack;
use crate::cache::Cache;
use crate::error::ApiError;
use crate::keys::all_events;
use crate::objects::Objects;
use crate::page::{ListQuery, MAX_OBJECTS, MAX_SCANNED, ObjectPage, PageToken};
use crate::record::StoredKind;

/// Records that are read at a time.
const STEP: usize = 16;

/// Reads a page.
pub(super) async fn list(
    objects: &Objects,
    cache: &Cache,
    query: &ListQuery,
) -> Result<ObjectPage, ApiError> {
    let mut range = Range::new(Span::prefix(all_events())).limit(STEP);
    let mut resume = None;
    if let Some(token) = &query.resume {
        range.at = Some(token.revision(&objects.incarnation)?);
        let place = Place::read(token.after())?;
        range.span = range.span.after(place.before().as_bytes());
        resume = Some(place);
    }
    let mut page = ObjectPage {
        objects: Vec::new(),
        revision: 0,
        next: None,
    };
    let limit = query.limit.clamp(1, MAX_OBJECTS);
    let mut scanned = 0;
    loop {
        let read = objects.store.range(range.clone()).await?;
        page.revision = *range.at.get_or_insert(read.revision);
        let end = read.records.last().map(|record| record.key.clone());
        for record in &read.records {
            let first = resume.as_ref().map_or(0, |place| place.first_of(record));
            for (number, event) in unpack(record, &objects.incarnation)?
                .into_iter()
                .enumerate()
            {
                scanned += 1;
                if number < first || !is_wanted(&event, record, cache, query) {
                    continue;
                }
                page.objects.push(event);
                if page.objects.len() >= limit {
                    return Ok(ended(page, objects, record, number));
                }
            }
            if scanned >= MAX_SCANNED {
                return Ok(ended(page, objects, record, usize::MAX));
            }
        }
        match end {
            Some(end) if read.more => range.span = range.span.after(&end),
            _ => return Ok(page),
        }
    }
}

fn is_wanted(event: &StoredKind, record: &Record, cache: &Cache, query: &ListQuery) -> bool {
    let namespace = event.object.namespace().unwrap_or_default();
    let is_in = query
        .namespace
        .as_deref()
        .is_none_or(|wanted| wanted == namespace);
    // An event that two servers wrote is told once.
    let is_first = || {
        let key = cache.event_key(namespace, event.object.name());
        key.is_none_or(|key| key.as_bytes() == record.key)
    };
    is_in && query.filter.matches(&event.object) && is_first()
}

fn ended(mut page: ObjectPage, objects: &Objects, record: &Record, number: usize) -> ObjectPage {
    let key = String::from_utf8_lossy(&record.key);
    let after = format!("{key}#{number}");
    page.next = Some(PageToken::new(&objects.incarnation, page.revision, after));
    page
}

/// The event that a page ended with: its record, and its number there.
struct Place {
    key: String,
    number: usize,
}

impl Place {
    fn read(text: &str) -> Result<Self, ApiError> {
        let place = text.rsplit_once('#').and_then(|(key, number)| {
            Some(Self {
                key: key.to_owned(),
                number: number.parse().ok()?,
            })
        });
        place.ok_or_else(|| ApiError::bad_request("`continue` is not from an answer to this list"))
    }

    /// What sorts just before the record and after all that are before it: a key without its last byte.
    fn before(&self) -> String {
        let mut before = self.key.clone();
        before.pop();
        before
    }

    /// The number of the first event of a record that was not told.
    fn first_of(&self, record: &Record) -> usize {
        match self.key.as_bytes().cmp(&record.key[..]) {
            std::cmp::Ordering::Greater => usize::MAX,
            std::cmp::Ordering::Equal => self.number.saturating_add(1),
            std::cmp::Ordering::Less => 0,
        }
    }
}
