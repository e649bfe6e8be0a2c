//! Owners whose objects are applied to another cluster than the one in which Flux runs.

use portolan_object::{Object, canonical_json};
use portolan_yaml::Node;

use crate::render::Rendering;
use crate::walk::index::Emitter;

/// The longest way from an owner up to the root that is followed; Flux objects that bring one another never end.
const MAX_DEPTH: usize = 64;

impl Rendering {
    /// What names the cluster that an owner applies its objects to by `spec.kubeConfig`, its own or that of whoever
    /// brings it; `None` for the cluster that Flux runs in.
    pub fn remote_cluster(&self, owner: &Emitter) -> Option<String> {
        let mut owner = owner;
        for _ in 0..MAX_DEPTH {
            let (definition, emitter) = self.brought_by(owner)?;
            // A clone is read, so that a packed definition stays packed.
            let node = definition.map(|object| object.clone().into_node());
            let config = node.and_then(|node| node.at_path(&["spec", "kubeConfig"]).cloned());
            if let Some(config) = config.filter(|config| !Node::is_null(config)) {
                let config = canonical_json(&config).ok()?;
                return Some(format!("{}/{config}", owner.id().namespace));
            }
            owner = emitter?;
        }
        None
    }

    /// The object that defines an owner, and who brings that object.
    fn brought_by(&self, owner: &Emitter) -> Option<(Option<&Object>, Option<&Emitter>)> {
        match owner {
            Emitter::Kustomization(id) => {
                let walked = self.walk.kustomizations.get(id)?;
                Some((walked.definition.as_ref(), walked.emitter.as_ref()))
            }
            Emitter::Release(id) => {
                let release = self.releases.get(id)?;
                Some((Some(&release.definition), Some(&release.emitter)))
            }
            Emitter::ResourceSet(_) | Emitter::Instance(_) => {
                let expansion = self.walk.expansions.get(owner)?;
                Some((Some(&expansion.definition), Some(&expansion.emitter)))
            }
        }
    }
}
