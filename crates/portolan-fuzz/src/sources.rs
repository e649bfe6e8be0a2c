//! Content of remote sources, and what the cache stores about them.

use portolan_sources::{BucketPage, Limits, Lock, unpack};

use crate::packed::{gzip, tar};
use crate::{Target, texts};

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "source-archive",
        about: "an artifact's archive, packed or not",
        run: |bytes| {
            let limits = Limits::default();
            unpack(bytes, &limits).is_ok() | unpack(&gzip(bytes), &limits).is_ok()
        },
        seeds: || {
            vec![
                tar(&[("a/b.yaml", "x: 1\n"), ("a/c", "")]),
                gzip(&tar(&[("x", "y")])),
            ]
        },
    },
    Target {
        name: "bucket-list",
        about: "a page of a bucket's list",
        run: |bytes| BucketPage::parse(bytes).is_ok(),
        seeds: || {
            texts(&[
                "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b</NextContinuationToken><Contents><Key>d/&lt;e&gt;</Key><Size>12</Size></Contents></ListBucketResult>",
                "<ListBucketResult><Contents><Key>a/</Key></Contents><Contents></Contents></ListBucketResult>",
            ])
        },
    },
    Target {
        name: "lock-file",
        about: "our lock file: what is read is written as something that reads the same",
        run: lock,
        seeds: || {
            texts(&[
                "{\"version\":1,\"sources\":{}}",
                "{\"version\":1,\"sources\":{\"chart https://example.com a 1.x\":{\"kind\":\"chart\",\"version\":\"1.2.3\",\"digest\":\"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\",\"url\":\"https://example.com/a.tgz\"}}}",
            ])
        },
    },
];

fn lock(bytes: &[u8]) -> bool {
    let Ok(lock) = Lock::parse("portolan.lock".into(), bytes) else {
        return false;
    };
    let again = Lock::parse("portolan.lock".into(), lock.to_text().as_bytes());
    let again = again.expect("reads its own text");
    assert_eq!(again.to_text(), lock.to_text());
    true
}
