//! What registries and their clients write.

use portolan_oci::{Challenge, Digest, DockerConfig, Manifest, Reference, Repository};

use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "oci-manifest",
        about: "an image's manifest or an index of them",
        run: |bytes| Manifest::parse("fuzz", bytes.to_vec()).is_ok(),
        seeds: || {
            texts(&[
                "{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"config\":{\"mediaType\":\"a\",\"digest\":\"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\",\"size\":0},\"layers\":[]}",
                "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"a\",\"digest\":\"sha256:x\",\"size\":-1,\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}}]}",
            ])
        },
    },
    Target {
        name: "oci-reference",
        about: "the name of an image: what is read prints as something that reads the same",
        run: reference,
        seeds: || {
            texts(&[
                "ghcr.io/a/b:v1@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                "localhost:5000/x",
                "[::1]:80/a/b",
                "ubuntu",
            ])
        },
    },
    Target {
        name: "oci-challenge",
        about: "the header in which a registry asks for a login",
        run: |bytes| {
            let text = std::str::from_utf8(bytes);
            text.is_ok_and(|text| Challenge::parse(text).is_some())
        },
        seeds: || {
            texts(&[
                "Bearer realm=\"https://auth.example.com/token\",service=\"r\",scope=\"repository:a/b:pull\"",
                "Basic realm=\"a\\\"b\\\\\"",
                "bearer realm=x, , =,service",
            ])
        },
    },
    Target {
        name: "docker-config",
        about: "Docker's file of logins",
        run: |bytes| DockerConfig::parse(bytes).is_ok(),
        seeds: || {
            texts(&[
                "{\"auths\":{\"https://index.docker.io/v1/\":{\"auth\":\"dTpw\"},\"ghcr.io/a\":{\"username\":\"u\",\"password\":\"p\"},\"x\":{\"identitytoken\":\"t\"}},\"credHelpers\":{\"gcr.io\":\"gcloud\"},\"credsStore\":\"pass\"}",
                "{\"auths\":{\"a\":{\"auth\":\"bm9jb2xvbg==\"}}}",
            ])
        },
    },
];

fn reference(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let _ = (text.parse::<Digest>(), text.parse::<Repository>());
    let Ok(reference) = text.parse::<Reference>() else {
        return false;
    };
    let again = reference.to_string().parse();
    assert_eq!(reference, again.expect("reads its own text"));
    true
}
