//! Other ways to bring a revision to its users than by weight: by header or cookie, all at once, by copies of requests, with
//! sessions that stay, and through routes that are the user's.

use kube::api::DynamicObject;
use portolan_testbed::cluster::eventually;
use serde_json::{Value, json};

use crate::bed::{Bed, create, record, shares_of, spec_with};

/// Every set of routes that there was, in order.
async fn all_routes(bed: &Bed) -> Vec<Value> {
    bed.observer.catch_up().await;
    let versions = bed.observer.versions().into_iter();
    let routes = versions.filter(|version| version.kind == "VirtualService");
    routes
        .filter_map(|version| Some(version.object?["spec"].clone()))
        .collect()
}

fn named<'a>(routes: &'a Value, start: &str) -> Option<&'a Value> {
    let routes = routes["http"].as_array()?;
    routes.iter().find(|route| {
        route["name"]
            .as_str()
            .is_some_and(|name| name.starts_with(start))
    })
}

async fn requests_with_a_header_or_cookie_go_to_the_new_revision_and_no_others() {
    let Some(bed) = Bed::start("ab").await else {
        return;
    };
    let matches = json!([{"headers": {"x-tester": {"exact": "yes"}}}, {"cookie": {"name": "group", "value": "beta"}}]);
    // Testers are no sample of all users: only a promise is held against them.
    let promised = json!([{"name": "errors", "builtin": "istio-requests", "slo": 0.05}]);
    let fields = json!({
        "strategy": {"type": "abTest", "weights": null, "match": matches},
        "analysis": {"metrics": promised},
    });
    bed.make_stable(spec_with("web:1", &fields)).await;
    bed.release("web:2").await;
    let status = bed
        .wait("the comparison", |status| !status["comparison"].is_null())
        .await;
    assert_eq!(
        status["comparison"], "none",
        "there is nobody to compare with"
    );
    bed.happened("Promoted").await;
    bed.reach("Stable").await;
    bed.reach_shares((0, 100)).await;
    let all = all_routes(&bed).await;
    let tested = all.iter().find_map(|routes| {
        let route = named(routes, "portolan-match")?;
        Some((route.clone(), shares_of(routes)))
    });
    let (route, shares) = tested.expect("routes of the test");
    assert_eq!(
        shares,
        Some((100, 0)),
        "all others stay with the old revision"
    );
    assert_eq!(route["route"][0]["destination"]["host"], "web-b");
    let matches = route["match"].to_string();
    assert!(
        matches.contains("x-tester") && matches.contains("group=beta"),
        "{matches}"
    );
    let last = all.last().expect("routes");
    assert!(
        named(last, "portolan-match").is_none(),
        "the test is over: {last:#}"
    );
    // A broken one is seen by its testers alone, and goes.
    bed.mesh.fail("web:3", 400);
    bed.release("web:3").await;
    let status = bed.reach("RolledBack").await;
    assert!(record(&status, "RolledBack").is_some(), "{status:#}");
    bed.reach_shares((0, 100)).await;
    bed.end().await;
}

async fn blue_and_green_change_places_at_once_and_the_policy_is_told() {
    let Some(bed) = Bed::start("blue-green").await else {
        return;
    };
    let fields =
        json!({"strategy": {"type": "blueGreen", "weights": null, "rollbackWindow": "60s"}});
    bed.make_stable(spec_with("web:1", &fields)).await;
    bed.release("web:2").await;
    let promoted = bed.happened("Promoted").await;
    assert_eq!(promoted["outcome"], "PromotedUnproven");
    bed.reach("Stable").await;
    bed.reach_shares((0, 100)).await;
    let all = all_routes(&bed).await;
    let shares: Vec<_> = all.iter().filter_map(shares_of).collect();
    let is_whole = |(a, b): &(u64, u64)| matches!((a, b), (100, 0) | (0, 100) | (5, 95));
    assert!(
        shares.iter().all(is_whole),
        "nothing in between but what is held back: {shares:?}"
    );
    bed.token("undo").await;
    bed.wait("the way back", |status| {
        status["stable"]["slot"] == "a" && status["phase"] == "RolledBack"
    })
    .await;
    bed.reach_shares((100, 0)).await;
    bed.end().await;
}

async fn copies_of_requests_come_before_requests() {
    let Some(bed) = Bed::start("mirror").await else {
        return;
    };
    // The copies last long enough for several intervals: one alone decides nothing.
    let steps = json!([{"weight": 10, "for": "1s"}, {"weight": 50, "for": "1s"}]);
    let fields =
        json!({"strategy": {"mirror": 30, "stepInterval": "8s", "weights": null, "steps": steps}});
    bed.make_stable(spec_with("web:1", &fields)).await;
    bed.release("web:2").await;
    bed.happened("Promoted").await;
    bed.reach("Stable").await;
    let all = all_routes(&bed).await;
    let mirror = |routes: &Value| {
        routes["http"]
            .as_array()
            .and_then(|routes| routes.last())
            .map(|route| route["mirrors"].clone())
    };
    let first = all.iter().position(|routes| {
        mirror(routes).is_some_and(|mirrors| mirrors[0]["percentage"]["value"] == 30)
    });
    let first = first.expect("copies were sent");
    let weighted = all
        .iter()
        .position(|routes| shares_of(routes) == Some((90, 10)));
    assert!(first < weighted.expect("requests were sent"));
    assert_eq!(shares_of(&all[first]), Some((100, 0)));
    assert_eq!(
        all[first]["http"][0]["mirrors"][0]["destination"]["host"],
        "web-b"
    );
    let last = all.last().and_then(mirror).expect("routes");
    assert!(last.is_null(), "no copies are sent any more: {last}");
    bed.end().await;
}

async fn a_revision_that_fails_copies_of_requests_never_gets_a_request() {
    let Some(bed) = Bed::start("mirror-bad").await else {
        return;
    };
    let fields = json!({"strategy": {"mirror": 30, "stepInterval": "8s", "weights": [10, 50]}});
    bed.make_stable(spec_with("web:1", &fields)).await;
    bed.mesh.fail("web:2", 500);
    bed.release("web:2").await;
    bed.reach("RolledBack").await;
    let all = all_routes(&bed).await;
    let shares: Vec<_> = all.iter().filter_map(shares_of).collect();
    assert!(
        shares.iter().all(|shares| *shares == (100, 0)),
        "{shares:?}"
    );
    bed.end().await;
}

async fn a_client_that_was_with_the_new_revision_stays_there() {
    let Some(bed) = Bed::start("sticky").await else {
        return;
    };
    let fields = json!({"strategy": {"stickySessions": {"cookieName": "release", "maxAge": "1h"}}});
    bed.make_stable(spec_with("web:1", &fields)).await;
    bed.release("web:2").await;
    let revision = bed.happened("Started").await["revision"]
        .as_str()
        .expect("a revision")
        .to_owned();
    bed.happened("Promoted").await;
    bed.reach("Stable").await;
    bed.reach_shares((0, 100)).await;
    let all = all_routes(&bed).await;
    let sticky = all
        .iter()
        .find_map(|routes| Some((named(routes, "portolan-sticky")?, routes)));
    let (route, routes) = sticky.expect("a route for clients that stay");
    assert_eq!(route["route"][0]["destination"]["host"], "web-b");
    let told = routes.to_string();
    assert!(told.contains(&format!("release={revision}")), "{told}");
    assert!(told.contains("Max-Age=3600"), "{told}");
    let last = all.last().expect("routes");
    assert!(named(last, "portolan-sticky").is_none(), "{last:#}");
    assert!(
        named(last, "portolan-unstick").is_some(),
        "the cookie is taken back: {last:#}"
    );
    bed.end().await;
}

async fn routes_of_the_user_are_split_in_place_and_all_else_in_them_stays() {
    let Some(bed) = Bed::start("users-routes").await else {
        return;
    };
    let untouched = json!({"name": "other", "match": [{"uri": {"prefix": "/other"}}], "route": [{"destination": {"host": "other"}}]});
    let routes = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
        "metadata": {"name": "web", "namespace": bed.namespace, "labels": {"team": "shop"}},
        "spec": {"hosts": ["shop.example.com"], "gateways": ["istio-system/public"], "http": [
            {"name": "app", "timeout": "3s", "route": [{"destination": {"host": "web"}}]},
            untouched,
        ]},
    });
    create(
        &bed.client,
        "networking.istio.io",
        "v1",
        "VirtualService",
        &routes,
    )
    .await;
    let slow = json!({"virtualServiceRef": {"name": "web", "routes": ["app"]}, "strategy": {"stepInterval": "60s"}});
    bed.make_stable(spec_with("web:1", &slow)).await;
    bed.release("web:2").await;
    bed.happened("Started").await;
    bed.reach_shares((90, 10)).await;
    let users = async || -> DynamicObject { bed.routes().get("web").await.expect("the routes") };
    let found = users().await;
    assert_eq!(found.data["spec"]["http"].as_array().map(Vec::len), Some(2));
    assert_eq!(found.data["spec"]["http"][1], untouched);
    assert_eq!(found.data["spec"]["http"][0]["timeout"], "3s");
    assert_eq!(found.data["spec"]["hosts"], json!(["shop.example.com"]));
    assert_eq!(
        found.metadata.owner_references, None,
        "they stay the user's"
    );
    // Who changes something else in them keeps it; who changes the weights does not.
    let mut http = found.data["spec"]["http"].clone();
    http[0]["timeout"] = json!("4s");
    http[0]["route"][0]["weight"] = json!(50);
    http[0]["route"][1]["weight"] = json!(50);
    let patch = kube::api::Patch::Merge(json!({"spec": {"http": http}}));
    let edit = kube::api::PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..kube::api::PatchParams::default()
    };
    bed.routes()
        .patch("web", &edit, &patch)
        .await
        .expect("edited");
    eventually("the weights", || async {
        let found = users().await;
        shares_of(&found.data["spec"]) == Some((90, 10))
            && found.data["spec"]["http"][0]["timeout"] == "4s"
    })
    .await;
    // The rollout is deleted: the routes lead to the application as they did before.
    bed.delete().await;
    eventually("the end", || async { bed.get().await.is_none() }).await;
    let found = users().await;
    let hosts = found.data["spec"]["http"][0]["route"].clone();
    assert_eq!(hosts.as_array().map(Vec::len), Some(1), "{hosts}");
    assert_eq!(hosts[0]["destination"]["host"], "web");
    bed.end().await;
}

crate::cases!(
    requests_with_a_header_or_cookie_go_to_the_new_revision_and_no_others,
    blue_and_green_change_places_at_once_and_the_policy_is_told,
    copies_of_requests_come_before_requests,
    a_revision_that_fails_copies_of_requests_never_gets_a_request,
    a_client_that_was_with_the_new_revision_stays_there,
    routes_of_the_user_are_split_in_place_and_all_else_in_them_stays,
);
