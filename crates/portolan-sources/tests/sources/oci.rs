//! Charts and artifacts from Debian's `docker-registry`.

use portolan_oci::{Digest, media_type};
use portolan_sources::{Access, ChartRequest, Limits, OciRef, OciRequest, SourceError};
use portolan_testbed::{Registry, RegistrySetup};
use portolan_vfs::Vfs as _;

use crate::desk::{Desk, archive};

const CHART_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const FLUX_LAYER: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";

/// Pushes an artifact with layers of some types and returns its digest.
fn push(registry: &Registry, name: &str, tag: &str, layers: &[(&str, &[u8])]) -> Digest {
    let config = Digest::of(b"{}");
    registry.push_blob(name, &config.to_string(), b"{}");
    let mut described = Vec::new();
    for (media_type, content) in layers {
        let digest = Digest::of(content);
        registry.push_blob(name, &digest.to_string(), content);
        described.push(format!(
            r#"{{"mediaType":"{media_type}","digest":"{digest}","size":{}}}"#,
            content.len()
        ));
    }
    let manifest = format!(
        r#"{{"schemaVersion":2,"mediaType":"{}","config":{{"mediaType":"application/json","digest":"{config}","size":2}},"layers":[{}]}}"#,
        media_type::OCI_MANIFEST,
        described.join(",")
    );
    registry.push_manifest(name, tag, media_type::OCI_MANIFEST, manifest.as_bytes());
    Digest::of(manifest.as_bytes())
}

fn chart(registry: &Registry, version: &str) -> ChartRequest {
    ChartRequest {
        repository: format!("oci://{}/charts", registry.host()),
        name: "web".to_owned(),
        version: version.to_owned(),
        access: Access::default(),
    }
}

fn artifact(registry: &Registry, reference: OciRef) -> OciRequest {
    OciRequest {
        url: format!("oci://{}/manifests", registry.host()),
        reference,
        media_type: None,
        access: Access::default(),
    }
}

#[tokio::test]
async fn a_chart_is_chosen_by_its_tags_and_pulled() {
    let Some(registry) = Registry::start(&RegistrySetup::default()) else {
        return;
    };
    for version in ["1.0.0", "1.2.0", "2.0.0-rc.1", "1.1.0_build.5"] {
        let prov: (&str, &[u8]) = ("application/vnd.cncf.helm.chart.provenance.v1.prov", b"p");
        push(
            &registry,
            "charts/web",
            version,
            &[prov, (CHART_LAYER, version.as_bytes())],
        );
    }
    let desk = Desk::new();
    for (range, version) in [
        ("", "1.2.0"),
        ("~1.0", "1.0.0"),
        ("1.1.0+build.5", "1.1.0+build.5"),
        ("~1.1", "1.1.0+build.5"),
    ] {
        let found = desk.open().chart(&chart(&registry, range)).await.unwrap();
        assert_eq!(found.version, version, "{range}");
        assert_eq!(found.content, version.replace('+', "_").as_bytes());
    }
    let found = desk
        .offline()
        .chart(&chart(&registry, "1.1.0+build.5"))
        .await;
    assert_eq!(found.unwrap().version, "1.1.0+build.5");
    let error = desk
        .open()
        .chart(&chart(&registry, ">3"))
        .await
        .unwrap_err();
    assert!(
        error.to_string().ends_with("no version in the range `>3`"),
        "{error}"
    );
}

#[tokio::test]
async fn an_artifact_that_is_no_chart_is_refused() {
    let Some(registry) = Registry::start(&RegistrySetup::default()) else {
        return;
    };
    push(&registry, "charts/web", "1.0.0", &[(FLUX_LAYER, b"x")]);
    let error = Desk::new()
        .open()
        .chart(&chart(&registry, "1.0.0"))
        .await
        .unwrap_err();
    assert!(matches!(error, SourceError::NoLayer { .. }), "{error}");
}

#[tokio::test]
async fn an_artifact_is_chosen_by_digest_tag_range_and_filter() {
    let Some(registry) = Registry::start(&RegistrySetup::default()) else {
        return;
    };
    let push = |tag: &str| {
        let layer = archive(&[("app.yaml", tag)]);
        push(&registry, "manifests", tag, &[(FLUX_LAYER, &layer)])
    };
    let old = push("1.0.0-alpine");
    push("1.5.0-debian");
    push("latest");
    let read = async |reference: OciRef| {
        let desk = Desk::new();
        let found = desk
            .open()
            .oci_artifact(&artifact(&registry, reference))
            .await
            .unwrap();
        let files = found.files(&Limits::default()).unwrap();
        String::from_utf8(files.read("/app.yaml".into()).unwrap()).unwrap()
    };
    assert_eq!(read(OciRef::Digest(old)).await, "1.0.0-alpine");
    assert_eq!(read(OciRef::Tag("latest".to_owned())).await, "latest");
    let semver = |filter: Option<&str>| OciRef::Semver {
        range: ">=1.0.0-0".to_owned(),
        filter: filter.map(str::to_owned),
    };
    assert_eq!(read(semver(None)).await, "1.5.0-debian");
    assert_eq!(read(semver(Some(".*-alpine.*"))).await, "1.0.0-alpine");
}

#[tokio::test]
async fn the_layer_is_chosen_by_its_type() {
    let Some(registry) = Registry::start(&RegistrySetup::default()) else {
        return;
    };
    let layers: [(&str, &[u8]); 2] = [("text/plain", b"first"), (FLUX_LAYER, b"second")];
    push(&registry, "manifests", "1", &layers);
    let mut request = artifact(&registry, OciRef::Tag("1".to_owned()));
    let desk = Desk::new();
    assert_eq!(
        desk.open().oci_artifact(&request).await.unwrap().content,
        b"first"
    );
    request.media_type = Some(FLUX_LAYER.to_owned());
    assert_eq!(
        desk.open().oci_artifact(&request).await.unwrap().content,
        b"second"
    );
    request.media_type = Some("none/such".to_owned());
    let error = desk.open().oci_artifact(&request).await.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("has no layer of type `none/such`"),
        "{error}"
    );
}

/// The tag moves, the pin stays.
#[tokio::test]
async fn a_pinned_tag_keeps_its_content() {
    let Some(registry) = Registry::start(&RegistrySetup::default()) else {
        return;
    };
    push(&registry, "manifests", "main", &[(FLUX_LAYER, b"old")]);
    let request = artifact(&registry, OciRef::Tag("main".to_owned()));
    let desk = Desk::new();
    let sources = desk.open();
    sources.oci_artifact(&request).await.unwrap();
    let lock = sources.pins();
    push(&registry, "manifests", "main", &[(FLUX_LAYER, b"new")]);
    let fresh = desk.open().oci_artifact(&request).await.unwrap();
    assert_eq!(fresh.content, b"new");
    let other_machine = Desk::new();
    let pinned = other_machine.open_with(lock, crate::desk::options());
    assert_eq!(pinned.oci_artifact(&request).await.unwrap().content, b"old");
}

#[tokio::test]
async fn a_layer_larger_than_allowed_is_not_fetched() {
    let Some(registry) = Registry::start(&RegistrySetup::default()) else {
        return;
    };
    push(&registry, "manifests", "1", &[(FLUX_LAYER, &[7; 1000])]);
    let mut small = crate::desk::options();
    small.limits.artifact_bytes = 999;
    let desk = Desk::new();
    let sources = desk.open_with(portolan_sources::Lock::default(), small);
    let request = artifact(&registry, OciRef::Tag("1".to_owned()));
    let error = sources.oci_artifact(&request).await.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("has 1000 bytes, more than the 999 allowed"),
        "{error}"
    );
}
