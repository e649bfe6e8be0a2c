//! Variables whose values are in Secrets: opened for a run whose book uses them, and for nobody else.

use std::collections::{BTreeMap, BTreeSet};

use portolan_digest::hex;
use portolan_kinds::find_kind;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::variable_sources::{SecretPlace, SourceNodes};
use super::variables::Variables;
use crate::cache::Cache;
use crate::error::ApiError;
use crate::keys::ObjectKey;
use crate::server::{ApiServer, Caller, Target};

/// What the key of the servers is used for in digests of secret values.
const DIGEST_PURPOSE: &str = "portolan pinned secret 1";

impl SecretPlace {
    /// Looks which Secret it is now, without its values.
    pub(super) fn find(&mut self, cache: &Cache, namespace: &str) {
        let key = find_kind("Secret");
        let key = key.map(|kind| ObjectKey::new(kind, Some(namespace), &self.secret));
        match key.and_then(|key| cache.object(&key)) {
            Some(secret) => {
                self.nodes = SourceNodes::of(&secret);
                self.version = format!("generation {}", secret.metadata.generation());
            }
            None => self.fault = Some(format!("there is no Secret {}", self.secret)),
        }
    }

    /// Why a node does not get the value.
    pub(super) fn fault_for(&self, node: &str, groups: &BTreeSet<&str>) -> Option<String> {
        if let Some(fault) = &self.fault {
            return Some(fault.clone());
        }
        let name = &self.secret;
        (!self.nodes.has(node, groups))
            .then(|| format!("Secret {name} has a `for` that does not name the node"))
    }
}

impl ApiServer {
    /// Reads the values of Secrets that somebody asks for. That they were read is in the audit log.
    pub(super) async fn open_secrets(
        &self,
        caller: &Caller,
        namespace: &str,
        variables: &mut Variables,
    ) -> Result<(), ApiError> {
        let kind = find_kind("Secret").ok_or_else(|| ApiError::internal("no kind Secret"))?;
        let mut opened: BTreeMap<String, Result<OpenedSecret, String>> = BTreeMap::new();
        for source in &mut variables.sources {
            let is_wanted = |name: &String| match &variables.wanted {
                Some(wanted) => wanted.contains(name),
                None => true,
            };
            let places = source.secrets.iter_mut();
            for (name, place) in places.filter(|(name, _)| is_wanted(name)) {
                if !opened.contains_key(&place.secret) {
                    let target = Target {
                        kind,
                        namespace: Some(namespace.to_owned()),
                        name: Some(place.secret.clone()),
                    };
                    let found = self.open_secret(caller, &target).await?;
                    opened.insert(place.secret.clone(), found);
                }
                match opened.get(&place.secret) {
                    Some(Ok(secret)) => {
                        place.version.clone_from(&secret.version);
                        place.nodes = secret.nodes.clone();
                        place.fault = None;
                        match secret.values.get(&place.key) {
                            Some(value) => {
                                source.source.values.insert(name.clone(), value.clone());
                            }
                            None => {
                                let (secret, key) = (&place.secret, &place.key);
                                place.fault = Some(format!("Secret {secret} has no value `{key}`"));
                            }
                        }
                    }
                    Some(Err(why)) => place.fault = Some(why.clone()),
                    None => {}
                }
            }
        }
        variables.is_opened = true;
        Ok(())
    }

    async fn open_secret(
        &self,
        caller: &Caller,
        target: &Target,
    ) -> Result<Result<OpenedSecret, String>, ApiError> {
        let name = target.name.as_deref().unwrap_or_default();
        let Some(found) = self.objects.get(&target.key()?).await? else {
            return Ok(Err(format!("there is no Secret {name}")));
        };
        self.record(caller, "read-secret", target, Ok(None)).await?;
        let values = match self.secret_values(&found).await {
            Ok(values) => values,
            Err(error) => return Ok(Err(format!("Secret {name}: {}", error.message))),
        };
        let mut version = format!("generation {}", found.object.metadata.generation());
        if found.object.spec.get("vault").is_some() {
            // Nobody tells the server when a value changes there.
            let digest = self.secret_digest(&[name], &Value::Object(values.clone()));
            version = format!("{version}, in Vault {}", digest.unwrap_or_default());
        }
        Ok(Ok(OpenedSecret {
            nodes: SourceNodes::of(&found.object),
            version,
            values,
        }))
    }

    /// Stands for a secret value: without the key of the servers nobody can tell whether it is of a value that they guess.
    /// `None` without such a key.
    pub(super) fn secret_digest(&self, about: &[&str], value: &Value) -> Option<String> {
        let key = self.objects.sealer.as_ref()?.derived(DIGEST_PURPOSE)?;
        let mut hasher = Sha256::new();
        hasher.update(key.as_slice());
        for part in about {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hasher.update(value.to_string());
        Some(hex(&hasher.finalize()[..8]))
    }
}

/// A Secret with its values.
struct OpenedSecret {
    nodes: SourceNodes,
    version: String,
    values: Map<String, Value>,
}
