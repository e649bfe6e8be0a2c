//! Fetches schemas that a chart's `values.schema.json` refers to, as Helm does while it renders.

use portolan_helm::{SchemaFetchError, SchemaSource};
use portolan_sources::FileRequest;
use portolan_supply::LazyRuntime;

use super::access_options::AccessOptions;

/// The web, by way of the cache; neither is touched for a chart that refers to nothing.
pub(crate) struct WebSchemas {
    pub(crate) access: AccessOptions,
    pub(crate) runtime: LazyRuntime,
}

impl SchemaSource for WebSchemas {
    fn fetch(&self, url: &str) -> Result<Vec<u8>, SchemaFetchError> {
        let request = FileRequest {
            url: url.to_owned(),
            ..FileRequest::default()
        };
        let sources = self.access.sources();
        let file = self.runtime.wait(sources.http_file(&request))??;
        Ok(file.content)
    }
}
