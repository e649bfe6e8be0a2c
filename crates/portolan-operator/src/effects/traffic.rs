//! Routes, the application's own Service, and the finalizer that guards them.

use portolan_rollout::objects::{
    apex_service, http_route, join_routes, split_routes, virtual_service,
};
use portolan_rollout::{Provider, Slot};
use serde_json::{Value, json};

use super::Doing;
use crate::apply::Wanted;
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
        if self.seen.deletion.is_some() {
            self.join_users_routes().await?;
        }
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

    /// Writes what the status says into the routes.
    pub(super) async fn write_routes(&self) -> Result<(), LookError> {
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
    async fn join_users_routes(&self) -> Result<(), LookError> {
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
