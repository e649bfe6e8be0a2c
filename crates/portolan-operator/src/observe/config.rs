//! Configuration that pods use, and revisions that are kept. Of a Secret, a hash is all that is remembered.

use portolan_cluster::ClusterError;
use portolan_rollout::objects::{RevisionContent, read_controller_revision};
use portolan_rollout::{
    ConfigKind, ConfigRef, ConfigVersion, MISSING, NOT_TRACKED, Observed, Revision, config_refs,
    content_hash,
};
use serde_json::Value;

use super::Look;
use crate::kinds;
use crate::memory::lock;

/// So many revisions are remembered with their templates: what runs in the two slots, and what comes next.
const REMEMBERED: usize = 3;

impl Look<'_> {
    /// Every tracked `ConfigMap` and Secret of a template as it is now.
    pub(super) async fn tracked_config(
        &self,
        template: &Value,
    ) -> Result<Vec<ConfigVersion>, ClusterError> {
        let mut found = Vec::new();
        if !self.spec.track_config {
            return Ok(found);
        }
        for config in config_refs(template) {
            let cache = self.ctx.caches.config(config.kind);
            let Some(object) = cache.get(self.namespace(), &config.name) else {
                found.push(missing(config));
                continue;
            };
            let annotations = object.metadata.annotations.as_ref();
            let is_tracked = annotations.and_then(|all| all.get(NOT_TRACKED));
            if is_tracked.is_some_and(|value| value == "false") {
                continue;
            }
            let version = object.metadata.resource_version.clone().unwrap_or_default();
            found.push(self.config_version(config, version).await?);
        }
        Ok(found)
    }

    async fn config_version(
        &self,
        config: ConfigRef,
        version: String,
    ) -> Result<ConfigVersion, ClusterError> {
        let known = lock(self.memo).hashes.get(&config).cloned();
        if let Some((_, hash)) = known.filter(|(known, _)| *known == version) {
            return Ok(ConfigVersion {
                config,
                resource_version: version,
                hash,
            });
        }
        let Some(object) = self.read_config(&config).await? else {
            return Ok(missing(config));
        };
        let resource_version = object["metadata"]["resourceVersion"].as_str();
        let resource_version = resource_version.unwrap_or_default().to_owned();
        let hash = content_hash(&object);
        let known = (resource_version.clone(), hash.clone());
        lock(self.memo).hashes.insert(config.clone(), known);
        Ok(ConfigVersion {
            config,
            resource_version,
            hash,
        })
    }

    /// A `ConfigMap` or Secret with its content.
    pub(crate) async fn read_config(
        &self,
        config: &ConfigRef,
    ) -> Result<Option<Value>, ClusterError> {
        let kind = match config.kind {
            ConfigKind::ConfigMap => kinds::config_maps(),
            ConfigKind::Secret => kinds::secrets(),
        };
        let cluster = &self.ctx.cluster;
        cluster.read(&kind, self.namespace(), &config.name).await
    }

    /// Revisions that are kept, and copies of configuration that the next one needs.
    pub(super) fn see_revisions(&self, seen: &mut Observed) {
        let first = format!("{}-", self.name());
        for object in self
            .ctx
            .caches
            .revisions
            .group(self.namespace(), self.name())
        {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            let revision = name.strip_prefix(&first).filter(|_| self.is_own(&object));
            let revision = revision.and_then(|name| serde_json::from_value(name.into()).ok());
            seen.revisions.extend::<Option<Revision>>(revision);
        }
        let target = self.status.and_then(|status| status.target.clone());
        let Some((target, status)) = target.zip(self.status) else {
            return;
        };
        for config in status.target_config() {
            let cache = self.ctx.caches.config(config.kind);
            let copy = cache.get(self.namespace(), &config.copy_name(&target));
            if copy.is_some_and(|copy| self.is_own(&copy)) {
                seen.copies.insert((target.clone(), config.clone()));
            }
        }
    }

    /// What a revision is made of: what the spec says, if it is that one, or what was kept.
    pub(crate) async fn content(
        &self,
        revision: &Revision,
        seen: &Observed,
    ) -> Result<Option<RevisionContent>, ClusterError> {
        if let Some(content) = lock(self.memo).contents.get(revision) {
            return Ok(Some(content.clone()));
        }
        let kind = kinds::revisions();
        let name = format!("{}-{revision}", self.name());
        let kept = self
            .ctx
            .cluster
            .read(&kind, self.namespace(), &name)
            .await?;
        let content = kept.as_ref().and_then(read_controller_revision);
        let content = content.filter(|content| content.revision == *revision);
        let content = content.or_else(|| self.current_content(revision, seen));
        if let Some(content) = &content {
            let mut memo = lock(self.memo);
            if memo.contents.len() >= REMEMBERED {
                memo.contents.clear();
            }
            memo.contents.insert(revision.clone(), content.clone());
        }
        Ok(content)
    }

    /// What the spec says now, if that is this revision.
    pub(crate) fn current_content(
        &self,
        revision: &Revision,
        seen: &Observed,
    ) -> Option<RevisionContent> {
        let template = seen.template.as_ref()?;
        let config = &self.status?.fence.config;
        let content = [config, &seen.config]
            .into_iter()
            .find(|config| revision.is_of(template, config) == Some(true));
        content.map(|config| RevisionContent {
            revision: revision.clone(),
            template: template.clone(),
            config: config.clone(),
        })
    }
}

fn missing(config: ConfigRef) -> ConfigVersion {
    ConfigVersion {
        config,
        resource_version: String::new(),
        hash: MISSING.to_owned(),
    }
}
