//! How the parts of Flux's objects are hashed: every field by name, so a new field is not forgotten.

use portolan_engine::{FieldHasher, Fingerprint, fingerprint};
use portolan_yaml::Text;

use crate::api::{
    ChartSpec, DataKind, Decryption, GitRef, HelmRepositoryType, NamespacedName, OciRef, PostBuild,
    SourceRef, SourceSpec, SubstituteReference, SubstituteStrategy,
};
use crate::release::chart::{Location, OciReference, ValuesFiles};

/// Texts that may be absent, in order.
fn optional<const N: usize>(fields: &mut FieldHasher, texts: [&Option<Text>; N]) {
    for text in texts {
        fields.add(&text.as_deref());
    }
}

/// A list of texts.
fn list(fields: &mut FieldHasher, texts: &[Text]) {
    fields.add(&texts.len());
    for text in texts {
        fields.add(text.as_str());
    }
}

fingerprint!(
    enum DataKind {
        ConfigMap,
        Secret,
    }
);
fingerprint!(
    enum HelmRepositoryType {
        Default,
        Oci,
    }
);
fingerprint!(
    enum SubstituteStrategy {
        WithVariables,
        Always,
    }
);

impl Fingerprint for SourceRef {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        let Self {
            kind,
            id: NamespacedName { namespace, name },
        } = self;
        for text in [kind, namespace, name] {
            fields.add(text.as_str());
        }
    }
}

impl Fingerprint for ValuesFiles {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        let Self {
            names,
            ignore_missing,
        } = self;
        list(fields, names);
        fields.add(ignore_missing);
    }
}

impl Fingerprint for OciReference {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        match self {
            Self::Digest(digest) => fields.add("Digest").add(digest.as_str()),
            Self::Range { range, filter } => {
                let filter = filter.as_deref();
                fields.add("Range").add(range.as_str()).add(&filter)
            }
            Self::Tag(tag) => fields.add("Tag").add(tag.as_str()),
        };
    }
}

impl Fingerprint for Location {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        match self {
            Self::Tree {
                source,
                path,
                values,
            } => fields
                .add("Tree")
                .add(source)
                .add(path.as_str())
                .add(values),
            Self::Repository {
                url,
                name,
                version,
                values,
            } => fields
                .add("Repository")
                .add(url.as_str())
                .add(name.as_str())
                .add(version.as_str())
                .add(values),
            Self::Registry {
                url,
                reference,
                layer,
                tracks_digest,
                values,
            } => fields
                .add("Registry")
                .add(url.as_str())
                .add(reference)
                .add(&layer.as_deref())
                .add(tracks_digest)
                .add(values),
        };
    }
}

impl Fingerprint for GitRef {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        let Self {
            commit,
            name,
            semver,
            tag,
            branch,
        } = self;
        optional(fields, [commit, name, semver, tag, branch]);
    }
}

impl Fingerprint for OciRef {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        let Self {
            digest,
            semver,
            semver_filter,
            tag,
        } = self;
        optional(fields, [digest, semver, semver_filter, tag]);
    }
}

impl Fingerprint for ChartSpec {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        let Self {
            chart,
            version,
            source,
            values_files,
            ignore_missing_values_files,
        } = self;
        fields.add(chart.as_str()).add(version.as_str()).add(source);
        list(fields, values_files);
        fields.add(ignore_missing_values_files);
    }
}

impl Fingerprint for SourceSpec {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        match self {
            Self::Git { url, reference } => fields.add("Git").add(url.as_str()).add(reference),
            Self::Oci {
                url,
                reference,
                layer_media_type,
                keep_archive,
            } => fields
                .add("Oci")
                .add(url.as_str())
                .add(reference)
                .add(&layer_media_type.as_deref())
                .add(keep_archive),
            Self::HelmRepository { url, kind } => {
                fields.add("HelmRepository").add(url.as_str()).add(kind)
            }
            Self::HelmChart(chart) => fields.add("HelmChart").add(chart),
            Self::Bucket {
                endpoint,
                name,
                prefix,
                region,
            } => fields
                .add("Bucket")
                .add(endpoint.as_str())
                .add(name.as_str())
                .add(prefix.as_str())
                .add(region.as_str()),
            Self::ExternalArtifact => fields.add("ExternalArtifact"),
        };
    }
}

impl Fingerprint for SubstituteReference {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        let Self {
            kind,
            name,
            optional,
        } = self;
        fields.add(kind).add(name.as_str()).add(optional);
    }
}

impl Fingerprint for PostBuild {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        let Self {
            substitute,
            from,
            strategy,
        } = self;
        fields.add(&substitute.len());
        for (name, value) in substitute {
            fields.add(name.as_str()).add(value.as_str());
        }
        fields.add(from).add(strategy);
    }
}

impl Fingerprint for Decryption {
    fn fingerprint(&self, fields: &mut FieldHasher) {
        let Self { provider, secret } = self;
        fields.add(provider.as_str()).add(&secret.as_deref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::fingerprint::Fingerprint as Inputs;

    fn digest(value: &impl Fingerprint) -> portolan_object::Digest {
        let mut inputs = Inputs::of("test");
        inputs.add(value);
        inputs.finish()
    }

    /// What is absent is not what is empty, and no field runs into the next one.
    #[test]
    fn values_that_differ_in_one_field_have_different_digests() {
        let git = |commit: Option<&str>, name: Option<&str>| GitRef {
            commit: commit.map(Text::from),
            name: name.map(Text::from),
            ..GitRef::default()
        };
        let references = [
            git(None, None),
            git(Some(""), None),
            git(None, Some("")),
            git(Some("a"), None),
            git(None, Some("a")),
            git(Some("a"), Some("")),
        ];
        for (index, one) in references.iter().enumerate() {
            for other in references.iter().skip(index + 1) {
                assert_ne!(digest(one), digest(other), "{one:?} {other:?}");
            }
            assert_eq!(digest(one), digest(&one.clone()));
        }
        let files = |names: &[&str]| ValuesFiles {
            names: names.iter().map(|name| Text::from(*name)).collect(),
            ignore_missing: false,
        };
        assert_ne!(digest(&files(&["ab"])), digest(&files(&["a", "b"])));
    }
}
