//! Which server agents should be connected to: the one that owns the shard, since it looks after runs.

use crate::membership::servers;
use crate::server::ApiServer;

impl ApiServer {
    /// Whether this server looks after runs.
    pub(crate) fn owns_runs(&self) -> bool {
        self.owned.borrow().is_some()
    }

    /// The address of the server that looks after runs, if it is another one that agents can reach.
    pub(crate) async fn runs_elsewhere(&self) -> Option<String> {
        if self.owns_runs() {
            return None;
        }
        let store = &self.objects.store;
        let shard = format!("{}0", portolan_store::keys::SHARDS);
        let owner = store.get(shard).await.ok()??;
        let owner = String::from_utf8_lossy(&owner.value).into_owned();
        let known = servers(store).await.ok()?;
        let owner = known
            .into_iter()
            .find(|server| server.server == owner && owner != self.name)?;
        Some(owner.address).filter(|address| !address.is_empty())
    }
}
