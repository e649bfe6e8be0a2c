//! Routes, the application's own Service, and the finalizer that guards them.

use portolan_rollout::objects::{
    ADOPTED_ANNOTATION, ROLLOUT_LABEL, apex_service, http_route, join_routes, split_routes,
    virtual_service, whole_http_route, whole_virtual_service,
};
use portolan_rollout::{Provider, Slot};
use serde_json::{Value, json};

use super::Doing;
use crate::apply::{MANAGED_BY, Wanted};
use crate::caches::as_json;
use crate::context::{LookError, MANAGER};
use crate::kinds;
use crate::point::Point;
use crate::rollout::FINALIZER;

/// The parts of a `VirtualService` that hold routes.
const ROUTES: [&str; 3] = ["http", "tcp", "tls"];

impl Doing<'_> {
    pub(super) async fn add_finalizer(&self) -> Result<(), LookError> {
        let mut finalizers = self.look.rollout.finalizers.clone();
        finalizers.push(FINALIZER.to_owned());
        self.write_finalizers(&finalizers).await?;
        self.look.ctx.wrote(Point::FinalizerAdded).await;
        Ok(())
    }

    pub(super) async fn remove_finalizer(&self) -> Result<(), LookError> {
        let mut finalizers = self.look.rollout.finalizers.clone();
        finalizers.retain(|name| name != FINALIZER);
        self.write_finalizers(&finalizers).await?;
        self.look.ctx.wrote(Point::FinalizerRemoved).await;
        Ok(())
    }

    async fn write_finalizers(&self, finalizers: &[String]) -> Result<(), LookError> {
        let (ctx, rollout) = (self.look.ctx, self.look.rollout);
        let written = ctx
            .cluster
            .replace_finalizers(&kinds::rollouts(), &rollout.version(), finalizers, MANAGER)
            .await?;
        self.look.remember_written(&written);
        Ok(())
    }

    /// Gives the application's own Service back to whom it belonged before it was taken over, with what it selected, and
    /// lets the rollout's own routes lead to it: the pods of both slots are about to go.
    pub(super) async fn return_service(&self) -> Result<(), LookError> {
        let look = self.look;
        let (cluster, place) = (&look.ctx.cluster, (look.namespace(), look.name()));
        let kind = kinds::services();
        let service = cluster.read(&kind, place.0, place.1).await?;
        let service = service.filter(|service| look.owns(service));
        let Some((service, before)) = service.and_then(|service| {
            let before = service["metadata"]["annotations"][ADOPTED_ANNOTATION].as_str()?;
            let before: Value = serde_json::from_str(before).ok()?;
            Some((service, before))
        }) else {
            return Ok(());
        };
        let patch = returned_service(&service, &before, &look.rollout.uid);
        cluster.merge(&kind, place, &patch, MANAGER).await?;
        look.ctx.wrote(Point::Apex).await;
        if look.spec.virtual_service_ref.is_some() {
            return Ok(());
        }
        let (cache, name) = look.routes();
        let object = match look.spec.routing.provider {
            Provider::Istio => whole_virtual_service(&look.app()),
            Provider::GatewayApi => whole_http_route(&look.app()),
        };
        let there = cache.get(look.namespace(), name);
        let wanted = Wanted {
            resource: cache.resource(),
            object,
            point: Point::Routes,
            there: there.map(|there| as_json(&there)),
        };
        look.put(wanted).await?;
        Ok(())
    }

    /// Writes what the status says into the routes, unless a slot would get more requests that has just lost its pods:
    /// then they stay as they are until the next look.
    pub(super) async fn write_routes(&self) -> Result<(), LookError> {
        if self.adds_where_nobody_answers().await? {
            return Ok(());
        }
        if self.look.spec.virtual_service_ref.is_some() {
            return self.split_users_routes().await;
        }
        let app = self.look.app();
        let object = match self.look.spec.routing.provider {
            Provider::Istio => virtual_service(&app, self.status),
            Provider::GatewayApi => http_route(&app, self.status),
        };
        let Some(object) = object else {
            return Ok(());
        };
        let (cache, name) = self.look.routes();
        let there = cache.get(self.look.namespace(), name);
        let wanted = Wanted {
            resource: cache.resource(),
            object,
            point: Point::Routes,
            there: there.map(|there| as_json(&there)),
        };
        self.look.put(wanted).await?;
        Ok(())
    }

    async fn adds_where_nobody_answers(&self) -> Result<bool, LookError> {
        let Some(next) = self.status.traffic else {
            return Ok(false);
        };
        for slot in Slot::BOTH {
            let now = self.seen.traffic;
            let adds = now.map_or(next.reaches(slot), |now| next.adds_to(slot, &now));
            if adds && !self.look.answers_now(slot).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Splits routes of a `VirtualService` that is the user's.
    async fn split_users_routes(&self) -> Result<(), LookError> {
        let Some(users) = &self.look.spec.virtual_service_ref else {
            return Ok(());
        };
        let app = self.look.app();
        self.change_users_routes(|spec| split_routes(&app, self.status, spec, &users.routes))
            .await
    }

    /// Lets routes of the user lead to the application's own Service again.
    pub(super) async fn join_users_routes(&self) -> Result<(), LookError> {
        let app = self.look.app();
        self.change_users_routes(|spec| join_routes(&app, spec))
            .await
    }

    /// Changes routes of the user, unless somebody else changes them at the same time.
    async fn change_users_routes(&self, change: impl Fn(&mut Value)) -> Result<(), LookError> {
        let Some(users) = &self.look.spec.virtual_service_ref else {
            return Ok(());
        };
        let (cluster, namespace) = (&self.look.ctx.cluster, self.look.namespace());
        let watched = self
            .look
            .ctx
            .caches
            .virtual_services
            .get(namespace, &users.name);
        if let Some(watched) = watched {
            let mut spec = watched.data["spec"].clone();
            change(&mut spec);
            if spec == watched.data["spec"] {
                return Ok(());
            }
        }
        let kind = kinds::virtual_services();
        let Some(object) = cluster.read(&kind, namespace, &users.name).await? else {
            return Ok(());
        };
        let mut spec = object["spec"].clone();
        change(&mut spec);
        if spec == object["spec"] {
            return Ok(());
        }
        let routes = ROUTES.iter().filter(|part| spec.get(**part).is_some());
        let routes: Value = routes
            .map(|part| ((*part).to_owned(), spec[*part].clone()))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let version = &object["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": routes});
        cluster
            .merge(&kind, (namespace, &users.name), &patch, MANAGER)
            .await?;
        self.look.ctx.wrote(Point::Routes).await;
        Ok(())
    }

    pub(super) async fn point_apex(&self, slot: Slot) -> Result<(), LookError> {
        let object = apex_service(&self.look.app(), slot);
        self.put_service(object, Point::Apex).await
    }

    pub(super) async fn put_service(&self, object: Value, point: Point) -> Result<(), LookError> {
        let services = &self.look.ctx.caches.services;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let there = services.get(self.look.namespace(), name);
        let wanted = Wanted {
            resource: services.resource(),
            object,
            point,
            there: there.map(|there| as_json(&there)),
        };
        self.look.put(wanted).await?;
        Ok(())
    }
}

/// What makes a Service that was taken over what it was before: its selector, its label, and no rollout as its owner.
fn returned_service(service: &Value, before: &Value, uid: &str) -> Value {
    let mut selector = before["selector"].as_object().cloned().unwrap_or_default();
    let keys = service["spec"]["selector"].as_object();
    for key in keys.into_iter().flat_map(serde_json::Map::keys) {
        // Without a value, a key goes.
        selector.entry(key.clone()).or_insert(Value::Null);
    }
    let owners = service["metadata"]["ownerReferences"].as_array();
    let owners: Vec<&Value> = owners
        .into_iter()
        .flatten()
        .filter(|owner| owner["uid"].as_str() != Some(uid))
        .collect();
    json!({
        "metadata": {
            "resourceVersion": service["metadata"]["resourceVersion"],
            "ownerReferences": owners,
            "annotations": {ADOPTED_ANNOTATION: null},
            "labels": {MANAGED_BY: before["managedBy"], ROLLOUT_LABEL: null},
        },
        "spec": {"selector": selector},
    })
}
