//! Debian's `docker-registry` with content pushed by hand.

use portolan_http::{Credentials, Tls};
use portolan_oci::{
    Digest, DockerConfig, OciError, Platform, Registry, RegistryOptions, Repository, Transport,
    media_type,
};
use portolan_testbed::{Authority, PASSWORD, Registry as Testbed, RegistrySetup, USER};

use crate::{anonymous, client, read_blob, with_logins};

const LAYER: &[u8] = b"the layer";

/// Pushes an image of one layer under some tags and returns its digest.
fn push(testbed: &Testbed, repository: &str, tags: &[&str]) -> Digest {
    let config = b"{}";
    for blob in [LAYER, config] {
        testbed.push_blob(repository, &Digest::of(blob).to_string(), blob);
    }
    let manifest = format!(
        r#"{{"schemaVersion":2,"mediaType":"{}",
            "config":{{"mediaType":"application/vnd.example.config+json","digest":"{}","size":2}},
            "layers":[{{"mediaType":"application/vnd.example.layer","digest":"{}","size":{}}}]}}"#,
        media_type::OCI_MANIFEST,
        Digest::of(config),
        Digest::of(LAYER),
        LAYER.len()
    );
    for tag in tags {
        testbed.push_manifest(
            repository,
            tag,
            media_type::OCI_MANIFEST,
            manifest.as_bytes(),
        );
    }
    Digest::of(manifest.as_bytes())
}

fn repository(testbed: &Testbed, name: &str) -> Repository {
    format!("oci://{}/{name}", testbed.host()).parse().unwrap()
}

#[tokio::test]
async fn tags_manifests_and_blobs_are_pulled() {
    let Some(testbed) = Testbed::start(&RegistrySetup::default()) else {
        return;
    };
    let digest = push(&testbed, "org/app", &["1.0.0", "1.1.0_build"]);
    let repository = repository(&testbed, "org/app");
    let registry = anonymous();
    let mut tags = registry.tags(&repository).await.unwrap();
    tags.sort();
    assert_eq!(tags, ["1.0.0", "1.1.0_build"]);

    let tag = repository.tag("1.0.0").unwrap();
    let (manifest, image) = registry.image(&tag, &Platform::default()).await.unwrap();
    assert_eq!(manifest.digest, digest);
    let again = registry.manifest(&repository.digest(digest)).await.unwrap();
    assert_eq!(again.bytes, manifest.bytes);
    let layer = image.layers.first().unwrap();
    assert_eq!(
        read_blob(&registry, &repository, layer).await.unwrap(),
        LAYER
    );
}

#[tokio::test]
async fn an_index_is_answered_with_the_image_of_the_platform() {
    let Some(testbed) = Testbed::start(&RegistrySetup::default()) else {
        return;
    };
    let digest = push(&testbed, "app", &["amd64"]);
    let repository = repository(&testbed, "app");
    let size = anonymous()
        .manifest(&repository.tag("amd64").unwrap())
        .await
        .unwrap()
        .bytes
        .len();
    let index = format!(
        r#"{{"schemaVersion":2,"mediaType":"{}","manifests":[{{"mediaType":"{}","digest":"{digest}",
            "size":{size},"platform":{{"os":"linux","architecture":"amd64"}}}}]}}"#,
        media_type::OCI_INDEX,
        media_type::OCI_MANIFEST
    );
    testbed.push_manifest("app", "all", media_type::OCI_INDEX, index.as_bytes());
    let all = repository.tag("all").unwrap();
    let (manifest, _) = anonymous().image(&all, &Platform::default()).await.unwrap();
    assert_eq!(manifest.digest, digest);
    let arm = Platform {
        architecture: "arm64".to_owned(),
        ..Platform::default()
    };
    let error = anonymous().image(&all, &arm).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("`{all}` has no image for `linux/arm64`")
    );
}

#[tokio::test]
async fn a_missing_tag_or_repository_is_named() {
    let Some(testbed) = Testbed::start(&RegistrySetup::default()) else {
        return;
    };
    let tag = repository(&testbed, "nothing/here").tag("1").unwrap();
    let error = anonymous().manifest(&tag).await.unwrap_err();
    assert_eq!(error.to_string(), format!("`{tag}` is not in the registry"));
}

#[tokio::test]
async fn a_registry_with_a_login_tells_missing_from_wrong() {
    let Some(testbed) = Testbed::start(&RegistrySetup {
        login: true,
        ..RegistrySetup::default()
    }) else {
        return;
    };
    push(&testbed, "app", &["1"]);
    let tag = repository(&testbed, "app").tag("1").unwrap();
    let login = |password: &str| {
        let credentials = Credentials::new(USER, password);
        with_logins(DockerConfig::single(&testbed.host(), credentials))
    };
    let none = anonymous().manifest(&tag).await.unwrap_err();
    assert_eq!(
        none.to_string(),
        format!("the registry refuses access to `{tag}`: no login is stored for it")
    );
    let wrong = login("wrong").manifest(&tag).await.unwrap_err();
    assert_eq!(
        wrong.to_string(),
        format!("the registry refuses access to `{tag}`: the login was not accepted")
    );
    login(PASSWORD).manifest(&tag).await.unwrap();
}

#[tokio::test]
async fn tls_is_trusted_by_the_given_authority_only() {
    let Some(testbed) = Testbed::start(&RegistrySetup::default()) else {
        return;
    };
    push(&testbed, "app", &["1"]);
    let authority = Authority::new();
    let testbed = testbed.restart(&RegistrySetup {
        tls: Some(&authority),
        ..RegistrySetup::default()
    });
    let tag = repository(&testbed, "app").tag("1").unwrap();
    let over_tls = |tls: Tls| {
        let options = RegistryOptions {
            transport: Transport::Tls,
            ..RegistryOptions::default()
        };
        Registry::new(client(tls), options)
    };
    let trusting = over_tls(Tls {
        authorities: vec![authority.certificate.clone()],
        ..Tls::default()
    });
    trusting.manifest(&tag).await.unwrap();
    let unknown = over_tls(Tls::default()).manifest(&tag).await.unwrap_err();
    assert!(matches!(unknown, OciError::Http(_)), "{unknown}");
    let careless = over_tls(Tls {
        skip_verification: true,
        ..Tls::default()
    });
    careless.manifest(&tag).await.unwrap();
}
