//! Records of builds: which result was built from which inputs, one file for each key.

use portolan_digest::Digest;
use portolan_image::Descriptor;
use serde::{Deserialize, Serialize};

/// The image that came of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionResult {
    /// The manifest or index.
    pub image: Descriptor,
    /// The lines that say which inputs went into the key, for whoever asks why a key differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
}

/// The layer that came of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LayerRecord {
    pub(crate) media_type: String,
    pub(crate) diff_id: String,
    pub(crate) blob: String,
    pub(crate) size: u64,
}

impl LayerRecord {
    pub(crate) fn new(layer: &portolan_image::Layer) -> Self {
        Self {
            media_type: layer.media_type.clone(),
            diff_id: layer.diff_id.to_string(),
            blob: layer.blob.to_string(),
            size: layer.size,
        }
    }

    pub(crate) fn layer(self) -> Option<portolan_image::Layer> {
        Some(portolan_image::Layer {
            media_type: self.media_type,
            diff_id: self.diff_id.parse().ok()?,
            blob: self.blob.parse::<Digest>().ok()?,
            size: self.size,
        })
    }
}
