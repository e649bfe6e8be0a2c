//! Fetches schemas that a chart's `values.schema.json` refers to, as Helm does while it renders.

use std::thread;

use portolan_helm::{SchemaFetchError, SchemaSource};
use portolan_sources::FileRequest;
use tokio::runtime::Runtime;

use super::access_options::AccessOptions;

/// The web, by way of the cache; neither is touched for a chart that refers to nothing.
pub(crate) struct WebSchemas(pub(crate) AccessOptions);

impl SchemaSource for WebSchemas {
    fn fetch(&self, url: &str) -> Result<Vec<u8>, SchemaFetchError> {
        let request = FileRequest {
            url: url.to_owned(),
            ..FileRequest::default()
        };
        let fetch = || -> anyhow::Result<Vec<u8>> {
            let sources = self.0.sources();
            let file = Runtime::new()?.block_on(sources.http_file(&request))?;
            Ok(file.content)
        };
        // A thread of its own, so that it does not matter what the caller's is in the middle of.
        let fetched = thread::scope(|scope| scope.spawn(fetch).join());
        match fetched {
            Ok(fetched) => Ok(fetched?),
            Err(_) => Err(format!("`{url}` was not fetched").into()),
        }
    }
}
