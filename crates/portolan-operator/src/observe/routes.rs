//! What the routes say, and whether whoever carries them out has accepted that.

use portolan_cluster::Cache;
use portolan_cluster::kube::core::DynamicObject;
use portolan_rollout::objects::read_traffic;
use portolan_rollout::{Observed, Problem, Provider};
use serde_json::Value;

use super::{Look, is_served, problem};

impl Look<'_> {
    /// The routes of the rollout: their kind, and their name.
    pub(crate) fn routes(&self) -> (&Cache, &str) {
        let caches = &self.ctx.caches;
        match (self.spec.routing.provider, &self.spec.virtual_service_ref) {
            (Provider::GatewayApi, _) => (&caches.http_routes, self.name()),
            (Provider::Istio, Some(users)) => (&caches.virtual_services, &users.name),
            (Provider::Istio, None) => (&caches.virtual_services, self.name()),
        }
    }

    pub(super) fn see_routes(&self, seen: &mut Observed, problems: &mut Vec<Problem>) {
        let (cache, name) = self.routes();
        if !is_served(cache) {
            let resource = cache.resource();
            let message = format!(
                "the cluster does not know the kind {} of {}; install what defines it, and this goes on",
                resource.kind, resource.api_version
            );
            problems.push(problem("RoutesNotServed", &message));
            return;
        }
        let routes = cache.get(self.namespace(), name);
        let is_users = self.spec.virtual_service_ref.is_some();
        if is_users && routes.is_none() {
            let message = format!(
                "the VirtualService {name} that spec.virtualServiceRef names does not exist"
            );
            problems.push(problem("RoutesMissing", &message));
        }
        let Some(routes) = routes.filter(|routes| is_users || self.is_own(routes)) else {
            return;
        };
        seen.traffic = read_traffic(&self.app(), &routes.data["spec"]);
        seen.routes_accepted = match self.spec.routing.provider {
            // Istio's control plane writes no status unless it is asked to.
            Provider::Istio => true,
            Provider::GatewayApi => is_accepted(&routes),
        };
    }
}

/// Whether every parent of a route has accepted its newest generation.
fn is_accepted(route: &DynamicObject) -> bool {
    let generation = route.metadata.generation;
    let parents = route.data["status"]["parents"].as_array();
    let parents = parents.map(Vec::as_slice).unwrap_or_default();
    let holds = |parent: &Value, kind: &str| {
        let conditions = parent["conditions"].as_array();
        conditions.into_iter().flatten().any(|condition| {
            condition["type"] == kind
                && condition["status"] == "True"
                && condition["observedGeneration"].as_i64() == generation
        })
    };
    let is_accepted = |parent: &Value| holds(parent, "Accepted") && holds(parent, "ResolvedRefs");
    !parents.is_empty() && parents.iter().all(is_accepted)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn route(parents: &Value) -> DynamicObject {
        let object = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"name": "web", "generation": 3}, "status": {"parents": parents},
        });
        serde_json::from_value(object).expect("an object")
    }

    #[test]
    fn a_route_is_in_force_when_every_parent_accepts_its_newest_generation() {
        let parent = |status: &str, generation: i64| {
            let condition = |kind: &str| json!({"type": kind, "status": status, "observedGeneration": generation});
            json!({"conditions": [condition("Accepted"), condition("ResolvedRefs")]})
        };
        assert!(is_accepted(&route(&json!([parent("True", 3)]))));
        for parents in [
            json!([]),
            json!([parent("True", 2)]),
            json!([parent("True", 3), parent("False", 3)]),
            json!([{"conditions": [{"type": "Accepted", "status": "True", "observedGeneration": 3}]}]),
        ] {
            assert!(!is_accepted(&route(&parents)), "{parents}");
        }
    }
}
