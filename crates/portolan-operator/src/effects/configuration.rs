//! Revisions and copies of configuration.

use portolan_cluster::ClusterError;
use portolan_rollout::objects::{RevisionContent, config_copy, controller_revision};
use portolan_rollout::{ConfigKind, ConfigRef, Revision, content_hash};

use super::Doing;
use crate::context::{LookError, MANAGER};
use crate::kinds;
use crate::observe::now;
use crate::point::Point;

impl Doing<'_> {
    pub(super) async fn save_revision(&self, revision: &Revision) -> Result<(), LookError> {
        let Some(content) = self.look.current_content(revision, self.seen) else {
            return Ok(());
        };
        let number = now().unix();
        let object = controller_revision(&self.look.app(), &content, number);
        let cluster = &self.look.ctx.cluster;
        let made = cluster.create(&kinds::revisions(), &object, MANAGER).await;
        ignore_existing(made)?;
        self.look.ctx.wrote(Point::RevisionSaved).await;
        Ok(())
    }

    /// Copies configuration, if it still is what the revision was named by.
    pub(super) async fn copy_config(
        &self,
        revision: &Revision,
        config: &ConfigRef,
    ) -> Result<(), LookError> {
        let Some(object) = self.look.read_config(config).await? else {
            return Ok(());
        };
        let recorded = self.status.fence.config.iter();
        let recorded = recorded
            .into_iter()
            .find(|version| version.config == *config);
        if recorded.is_none_or(|version| version.hash != content_hash(&object)) {
            return Ok(());
        }
        let copy = config_copy(&self.look.app(), &object, config, revision);
        let kind = match config.kind {
            ConfigKind::ConfigMap => kinds::config_maps(),
            ConfigKind::Secret => kinds::secrets(),
        };
        let made = self.look.ctx.cluster.create(&kind, &copy, MANAGER).await;
        ignore_existing(made)?;
        self.look.ctx.wrote(Point::ConfigCopied).await;
        Ok(())
    }

    /// Deletes a revision and its copies.
    pub(super) async fn delete_revision(&self, revision: &Revision) -> Result<(), LookError> {
        let (ctx, namespace) = (self.look.ctx, self.look.namespace());
        let content = self.look.content(revision, self.seen).await?;
        for config in content.iter().flat_map(RevisionContent::tracked) {
            let cache = ctx.caches.config(config.kind);
            let name = config.copy_name(revision);
            let copy = cache
                .get(namespace, &name)
                .filter(|copy| self.look.is_own(copy));
            if let Some(uid) = copy.and_then(|copy| copy.metadata.uid.clone()) {
                let place = (namespace, name.as_str());
                ctx.cluster.delete(cache.resource(), place, &uid).await?;
            }
        }
        let name = format!("{}-{revision}", self.look.name());
        let kept = ctx.caches.revisions.get(namespace, &name);
        if let Some(uid) = kept.and_then(|kept| kept.metadata.uid.clone()) {
            let place = (namespace, name.as_str());
            ctx.cluster.delete(&kinds::revisions(), place, &uid).await?;
        }
        ctx.wrote(Point::RevisionDeleted).await;
        Ok(())
    }
}

/// What exists cannot be changed, so it is what was to be made.
fn ignore_existing<T>(made: Result<T, ClusterError>) -> Result<(), ClusterError> {
    match made {
        Ok(_) | Err(ClusterError::Exists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
