//! Join tokens in the store: the public part, how many nodes may still be enrolled, and until when.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use portolan_identity::JoinToken;
use portolan_kinds::wire::StoredJoinToken;
use portolan_store::{Record, Span, Store, Transaction};
use prost::Message as _;
use zeroize::Zeroizing;

use crate::clock::TimeSource;
use crate::error::ApiError;
use crate::keys;

/// How long a token works when nobody says otherwise.
pub(crate) const DEFAULT_LIFE: Duration = Duration::from_hours(24);
/// The longest life of a token.
pub(crate) const MAX_LIFE: Duration = Duration::from_hours(90 * 24);
/// The most nodes of one token.
pub(crate) const MAX_USES: u32 = 100_000;

/// Join tokens in the store.
#[derive(Clone)]
pub(crate) struct JoinTokens {
    pub(crate) store: Store,
    pub(crate) time: Arc<dyn TimeSource>,
}

/// A join token to make.
#[derive(Debug, Clone)]
pub(crate) struct NewJoinToken {
    pub(crate) uses: u32,
    pub(crate) life: Duration,
    pub(crate) name_pattern: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) created_by: String,
}

impl JoinTokens {
    /// Makes a token of a fleet and returns its text, which nobody can read again.
    pub(crate) async fn create(
        &self,
        fleet: &str,
        new: NewJoinToken,
    ) -> Result<(String, Zeroizing<String>, StoredJoinToken), ApiError> {
        let token = JoinToken::generate(fleet);
        let now = self.time.now();
        let stored = StoredJoinToken {
            public_key: token.public_key().to_bytes().to_vec().into(),
            uses: new.uses,
            expires: (now + new.life).as_secs(),
            name_pattern: new.name_pattern,
            labels: new.labels,
            created: now.as_secs(),
            created_by: new.created_by,
        };
        let create = Transaction::create(keys::join_token(token.id()), stored.encode_to_vec());
        if !self.store.commit(create).await?.succeeded {
            return Err(ApiError::unavailable("the join token could not be stored"));
        }
        Ok((token.id().to_owned(), token.to_text(), stored))
    }

    /// A token with its record, if it exists.
    pub(crate) async fn find(
        &self,
        id: &str,
    ) -> Result<Option<(Record, StoredJoinToken)>, ApiError> {
        let Some(record) = self.store.get(keys::join_token(id)).await? else {
            return Ok(None);
        };
        let stored = StoredJoinToken::decode(record.value.clone())
            .map_err(|_| ApiError::internal("the record of a join token is damaged"))?;
        Ok(Some((record, stored)))
    }

    /// All tokens by id.
    pub(crate) async fn list(&self) -> Result<Vec<(String, StoredJoinToken)>, ApiError> {
        let prefix = keys::join_tokens();
        let mut found = Vec::new();
        self.store
            .scan(&Span::prefix(prefix.clone()), None, |record| {
                let id = String::from_utf8_lossy(&record.key[prefix.len()..]).into_owned();
                if let Ok(token) = StoredJoinToken::decode(record.value) {
                    found.push((id, token));
                }
                Ok(())
            })
            .await?;
        Ok(found)
    }

    /// Deletes a token; says whether there was one.
    pub(crate) async fn delete(&self, id: &str) -> Result<bool, ApiError> {
        crate::token::delete_key(&self.store, &keys::join_token(id)).await
    }
}

/// Whether a name fits a pattern in which `*` stands for any text.
pub(crate) fn fits_pattern(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(fits_pattern(pattern, name), expected, "{pattern} {name}");
        };
        check("*", "web-1", true);
        check("web-*", "web-1", true);
        check("web-*", "db-1", false);
        check("*.example.com", "a.example.com", true);
        check("web-*-eu-*", "web-1-eu-2", true);
        check("web-*-eu", "web-eu", false);
        check("a*a", "a", false);
        check("web", "web", true);
        check("web", "web-1", false);
    }
}
