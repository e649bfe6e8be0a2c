//! What builders of programs do around the work itself: an image that is known is taken from the store, a new one is
//! recorded there.

use portolan_digest::Digest;
use portolan_image::{Descriptor, Scan};
use portolan_layout::{ActionResult, Run};

use super::oci::built;
use super::referrers::{Subject, refer};
use super::{BuildSetup, Prospect, ShipError};
use crate::inputs::{Inputs, is_of};
use crate::outcome::Built;

/// What an artifact is called.
pub(super) struct ArtifactName<'a> {
    /// In the document, and in the store.
    pub(super) name: &'a str,
    /// The repository of its image.
    pub(super) repository: &'a str,
    pub(super) setup: &'a BuildSetup,
}

/// An artifact whose inputs were read.
pub(super) struct ReadArtifact<'a> {
    pub(super) run: Run<'a>,
    pub(super) found: Scan,
    pub(super) inputs: Inputs,
    pub(super) key: Digest,
}

impl ReadArtifact<'_> {
    /// The image of these inputs: the one in the store, or the one that `make` makes.
    pub(super) fn build(
        mut self,
        of: &ArtifactName<'_>,
        make: impl FnOnce(&Self) -> Result<Descriptor, ShipError>,
    ) -> Result<Built, ShipError> {
        let known = self.run.cached(&self.key)?;
        let last = self.run.inputs(of.name);
        self.inputs.add_entries(&self.found.entries);
        if let Some(known) = known {
            self.run.tag(of.name, &known.image)?;
            if !is_of(last.as_deref(), &self.key) {
                self.keep_inputs(of);
            }
            self.refer(of, &known.image)?;
            return Ok(built(&known, true, Vec::new()));
        }
        let because = self.inputs.changes_since(last.as_deref());
        let result = ActionResult {
            image: make(&self)?,
            inputs: Vec::new(),
        };
        self.run.record(&self.key, &result)?;
        self.run.tag(of.name, &result.image)?;
        self.keep_inputs(of);
        self.refer(of, &result.image)?;
        Ok(built(&result, false, because))
    }

    /// What is known before it is built.
    pub(super) fn look(mut self, of: &ArtifactName<'_>) -> Result<Prospect, ShipError> {
        let image = self.run.cached(&self.key)?;
        self.inputs.add_entries(&self.found.entries);
        Ok(Prospect {
            image: image.map(|known| known.image.digest),
            last: self.run.inputs(of.name),
            key: self.key,
            inputs: self.inputs,
        })
    }

    fn keep_inputs(&self, of: &ArtifactName<'_>) {
        self.run.keep_inputs(of.name, &self.inputs.kept(&self.key));
    }

    /// Says beside the image where it comes from.
    fn refer(&self, of: &ArtifactName<'_>, image: &Descriptor) -> Result<(), ShipError> {
        let subject = Subject {
            repository: of.repository,
            image,
            key: &self.key,
            base: None,
            files: None,
        };
        refer(&subject, of.setup, &self.run)
    }
}
