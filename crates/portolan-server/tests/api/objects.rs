//! Objects: created, replaced, applied, refused and listed.

use serde_json::json;

use crate::bed::{VARIABLES, bed, variable};

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_created_read_updated_and_deleted() {
    let bed = bed().await;
    let (status, created) = bed
        .post(VARIABLES, variable("region", json!({"region": "north"})))
        .await;
    assert_eq!(status, 201, "{created}");
    assert_eq!(created["metadata"]["generation"], 1);
    let (status, again) = bed
        .post(VARIABLES, variable("region", json!({"region": "x"})))
        .await;
    assert_eq!(
        (status.as_u16(), again["reason"].as_str()),
        (409, Some("AlreadyExists"))
    );
    let path = format!("{VARIABLES}/region");
    let (_, read) = bed.get(&path).await;
    assert_eq!(read, created);

    let (status, refused) = bed
        .put(&path, variable("region", json!({"region": "south"})))
        .await;
    assert_eq!(
        (status.as_u16(), refused["reason"].as_str()),
        (428, Some("VersionRequired"))
    );
    let mut update = read.clone();
    update["spec"]["values"]["region"] = "south".into();
    let (status, updated) = bed.put(&path, update.clone()).await;
    assert_eq!(status, 200, "{updated}");
    assert_eq!(updated["metadata"]["generation"], 2);
    assert_ne!(
        updated["metadata"]["resourceVersion"],
        read["metadata"]["resourceVersion"]
    );

    update["spec"]["values"]["region"] = "west".into();
    let (status, conflict) = bed.put(&path, update).await;
    assert_eq!(
        (status.as_u16(), conflict["reason"].as_str()),
        (409, Some("Conflict"))
    );
    assert_eq!(
        conflict["details"]["changed"],
        json!(["metadata.generation", "spec.values.region"])
    );

    let (status, wrong) = bed.delete(&format!("{path}?uuid=x")).await;
    assert_eq!(status, 409, "{wrong}");
    let (status, deleted) = bed.delete(&path).await;
    assert_eq!((status.as_u16(), &deleted["deleted"]), (200, &json!(true)));
    assert_eq!(bed.get(&path).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_keeps_what_others_added_and_writes_nothing_when_nothing_changed() {
    let bed = bed().await;
    let path = format!("{VARIABLES}/a?apply=true");
    let mut applied = variable("a", json!({"x": 1}));
    applied["metadata"]["labels"] = json!({"mine": "1", "also": "2"});
    let (_, first) = bed.put(&path, applied.clone()).await;
    let (_, second) = bed.put(&path, applied.clone()).await;
    assert_eq!(first, second, "nothing changed");

    let mut other = second.clone();
    other["metadata"]["labels"]["theirs"] = "3".into();
    let (status, _) = bed.put(&format!("{VARIABLES}/a"), other).await;
    assert_eq!(status, 200);
    applied["metadata"]["labels"] = json!({"mine": "9"});
    let (_, third) = bed.put(&path, applied).await;
    assert_eq!(
        third["metadata"]["labels"],
        json!({"mine": "9", "theirs": "3"})
    );
    assert_eq!(third["metadata"]["generation"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_object_is_told_with_every_field_and_changes_nothing() {
    let bed = bed().await;
    let mut wrong = variable("a", json!({"1x": 1}));
    wrong["spec"]["vales"] = json!(3);
    let (status, error) = bed.post(VARIABLES, wrong).await;
    assert_eq!(status, 422);
    let faults = error["details"]["faults"].as_array().expect("faults");
    let paths: Vec<&str> = faults
        .iter()
        .filter_map(|fault| fault["path"].as_str())
        .collect();
    assert!(
        paths.contains(&"spec.vales") && paths.contains(&"spec.values.1x"),
        "{error}"
    );
    let (status, _) = bed
        .post(
            &format!("{VARIABLES}?dryRun=true"),
            variable("a", json!({"x": 1})),
        )
        .await;
    assert_eq!(status, 201);
    let (_, list) = bed.get(VARIABLES).await;
    assert_eq!(list["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_list_are_of_one_revision() {
    let bed = bed().await;
    for number in 0..7 {
        let mut object = variable(&format!("v{number}"), json!({"n": number}));
        object["metadata"]["labels"] = json!({"odd": (number % 2).to_string()});
        assert_eq!(bed.post(VARIABLES, object).await.0, 201);
    }
    let (_, first) = bed.get(&format!("{VARIABLES}?limit=3")).await;
    bed.delete(&format!("{VARIABLES}/v5")).await;
    let mut names: Vec<String> = Vec::new();
    let mut page = first.clone();
    loop {
        let items = page["items"].as_array().expect("a list");
        names.extend(
            items
                .iter()
                .filter_map(|item| item["metadata"]["name"].as_str())
                .map(str::to_owned),
        );
        assert_eq!(
            page["metadata"]["resourceVersion"],
            first["metadata"]["resourceVersion"]
        );
        let Some(next) = page["metadata"]["continue"].as_str() else {
            break;
        };
        page = bed
            .get(&format!("{VARIABLES}?limit=3&continue={next}"))
            .await
            .1;
    }
    assert_eq!(names, ["v0", "v1", "v2", "v3", "v4", "v5", "v6"]);
    let (_, odd) = bed.get(&format!("{VARIABLES}?labelSelector=odd%3D1")).await;
    assert_eq!(odd["items"].as_array().map(Vec::len), Some(2));
    let (_, one) = bed
        .get("/api/v1alpha/variables?fieldSelector=metadata.name%3Dv2")
        .await;
    assert_eq!(one["items"].as_array().map(Vec::len), Some(1));
    let (status, wrong) = bed
        .get(&format!("{VARIABLES}?fieldSelector=spec.x%3D1"))
        .await;
    assert_eq!(status, 400, "{wrong}");
    assert_eq!(bed.get(&format!("{VARIABLES}?continue=x")).await.0, 400);
    assert_eq!(
        bed.get(&format!("{VARIABLES}?resourceVersion=7.1&watch=true"))
            .await
            .0,
        410
    );
}
