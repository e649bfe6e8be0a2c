//! Writes of controllers, which are done for a shard and refused when another server owns it.

use portolan_store::{Compare, Transaction};

use super::{Author, Objects};
use crate::error::ApiError;
use crate::keys::ObjectKey;

impl Objects {
    /// Tells why a write was refused if its author acts for a shard that it does not own any more.
    pub(super) async fn check_fence(&self, author: &Author) -> Result<(), ApiError> {
        let Some(fence) = &author.fence else {
            return Ok(());
        };
        let asked = Transaction::new().when(fence.clone());
        if self.store.commit(asked).await?.succeeded {
            return Ok(());
        }
        let message = "another server has taken over this work: nothing was written";
        Err(ApiError::unavailable(message))
    }

    /// Makes an object nobody's that came from a repository which is gone.
    pub(crate) async fn release_source(
        &self,
        key: &ObjectKey,
        fence: Compare,
    ) -> Result<(), ApiError> {
        let Some(mut found) = self.get(key).await? else {
            return Ok(());
        };
        if found.object.metadata.source.take().is_some() {
            let replace = Transaction::replace(key.spec(), found.spec_revision, found.spec_value());
            self.store.commit(replace.when(fence)).await?;
        }
        Ok(())
    }
}
