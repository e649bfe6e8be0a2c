//! Helm's own record of a release: JSON, gzipped, in base64, as the `release` key of a Secret holds it.
//!
//! The Secret is named `sh.helm.release.v1.NAME.vREVISION`. Kubernetes encodes its data in base64 once more;
//! [`decode`] accepts both forms.

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::manifest::Hook;
use crate::package::{ChartFile, Dependency, ImportValues, Lock, Metadata, Package};
use crate::values::Tree;

/// The largest record that is unpacked: etcd's limit for the packed one is 1.5 MB.
pub const MAX_RECORD_BYTES: u64 = 256 * 1024 * 1024;

/// A stored release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredRelease {
    /// The release's name.
    pub name: String,
    /// When and how it was installed.
    pub info: Info,
    /// The chart, as Helm writes it.
    #[serde(default)]
    pub chart: Json,
    /// The values the user gave.
    #[serde(default)]
    pub config: Json,
    /// All manifests but hooks, in one text.
    #[serde(default)]
    pub manifest: String,
    /// The hooks.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub hooks: Vec<StoredHook>,
    /// The revision.
    pub version: i64,
    /// The namespace.
    #[serde(default)]
    pub namespace: String,
}

/// When and how a release was installed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Info {
    /// When its first revision was installed, in RFC 3339.
    #[serde(default)]
    pub first_deployed: String,
    /// When this revision was installed.
    #[serde(default)]
    pub last_deployed: String,
    /// When it was uninstalled; empty while it is installed.
    #[serde(default)]
    pub deleted: String,
    /// What happened last, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// `deployed`, `superseded`, `failed` and so on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The rendered notes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// A stored hook.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StoredHook {
    /// The object's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The object's kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The template it comes from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manifest: String,
    /// When it runs.
    #[serde(
        default,
        deserialize_with = "null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub events: Vec<String>,
    /// Its last run, as Helm writes it.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub last_run: Json,
    /// Its weight among the hooks of its event.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub weight: i64,
    /// When it is deleted.
    #[serde(
        default,
        deserialize_with = "null_is_empty",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub delete_policies: Vec<String>,
}

/// Why a record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// It is not base64.
    #[error("release record is not base64")]
    Base64(#[from] base64::DecodeError),
    /// It is not a gzip stream, or cut off.
    #[error("cannot unpack the release record")]
    Gzip(#[from] std::io::Error),
    /// It unpacks to more than [`MAX_RECORD_BYTES`].
    #[error("release record is larger than {MAX_RECORD_BYTES} bytes")]
    TooLarge,
    /// It is not the JSON of a release.
    #[error("cannot read the release record")]
    Json(#[from] serde_json::Error),
}

/// Reads a record as it lies in a Secret's data, with or without the Secret's own base64 around it.
pub fn decode(record: &[u8]) -> Result<StoredRelease, StorageError> {
    Ok(serde_json::from_slice(&unpack(record)?)?)
}

/// The JSON of a record, for who needs only a part of it: most of its bytes are the chart.
pub fn unpack(record: &[u8]) -> Result<Vec<u8>, StorageError> {
    let mut bytes = STANDARD.decode(record.trim_ascii())?;
    if !is_packed(&bytes) && bytes.first() != Some(&b'{') {
        bytes = STANDARD.decode(bytes.trim_ascii())?;
    }
    // Helm 2's first records were not packed.
    if !is_packed(&bytes) {
        return Ok(bytes);
    }
    let mut json = Vec::with_capacity(said_size(&bytes));
    GzDecoder::new(bytes.as_slice())
        .take(MAX_RECORD_BYTES + 1)
        .read_to_end(&mut json)?;
    if json.len() as u64 > MAX_RECORD_BYTES {
        return Err(StorageError::TooLarge);
    }
    Ok(json)
}

/// Writes a record; the Secret's own base64 is not part of it.
pub fn encode(release: &StoredRelease) -> Result<String, StorageError> {
    pack(&serde_json::to_value(release)?)
}

/// Packs the JSON of a release as a record. Fields that are not known here stay as they are.
pub fn pack(release: &Json) -> Result<String, StorageError> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&serde_json::to_vec(release)?)?;
    Ok(STANDARD.encode(packed.finish()?))
}

/// The values that a user gave, as a release records them.
pub fn stored_values(values: &Tree) -> Json {
    let text = crate::values::json::text(&values.thaw());
    serde_json::from_str(&text).unwrap_or_default()
}

/// The name of the Secret that holds a revision.
pub fn secret_name(release: &str, revision: i64) -> String {
    format!("sh.helm.release.v1.{release}.v{revision}")
}

/// The size that a gzip stream says it unpacks to, at its end; not believed beyond what a large chart has.
fn said_size(packed: &[u8]) -> usize {
    const MOST: usize = 4 * 1024 * 1024;
    let size = packed
        .last_chunk()
        .map_or(0, |end| u32::from_le_bytes(*end));
    (size as usize).min(MOST)
}

fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b, 0x08])
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn null_is_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

// === Charts and hooks as Helm writes them ===

impl From<&Hook> for StoredHook {
    fn from(hook: &Hook) -> Self {
        Self {
            name: hook.manifest.name.clone(),
            kind: hook.manifest.kind.clone(),
            path: hook.manifest.source.to_string(),
            manifest: hook.manifest.text.to_string(),
            events: hook.events.iter().map(|e| e.name().to_owned()).collect(),
            last_run: Json::Null,
            weight: hook.weight,
            delete_policies: hook.delete_policies.clone(),
        }
    }
}

/// A chart as a release records it: metadata, templates, files and default values, without its subcharts.
pub fn stored_chart(chart: &Package) -> Json {
    let values = crate::values::json::text(&chart.values.thaw());
    serde_json::json!({
        "metadata": metadata(&chart.metadata),
        "lock": chart.lock.as_ref().map(lock),
        "templates": files(&chart.templates),
        "values": serde_json::from_str::<Json>(&values).unwrap_or_default(),
        "schema": chart.schema.as_deref().map(|schema| STANDARD.encode(schema)),
        "files": files(&chart.files),
    })
}

fn files(files: &[ChartFile]) -> Json {
    let file = |file: &ChartFile| serde_json::json!({"name": file.name, "data": STANDARD.encode(&file.content)});
    files.iter().map(file).collect()
}

fn metadata(metadata: &Metadata) -> Json {
    let maintainers: Vec<_> = metadata
        .maintainers
        .iter()
        .map(|m| without_empty(serde_json::json!({"name": m.name, "email": m.email, "url": m.url})))
        .collect();
    let annotations: serde_json::Map<_, _> = metadata
        .annotations
        .iter()
        .map(|(key, value)| (key.clone(), Json::from(value.as_str())))
        .collect();
    let listed = metadata.dependencies.iter().flatten();
    without_empty(serde_json::json!({
        "name": metadata.name,
        "home": metadata.home,
        "sources": metadata.sources,
        "version": metadata.version,
        "description": metadata.description,
        "keywords": metadata.keywords,
        "maintainers": maintainers,
        "icon": metadata.icon,
        "apiVersion": metadata.api_version,
        "condition": metadata.condition,
        "tags": metadata.tags,
        "appVersion": metadata.app_version,
        "deprecated": metadata.deprecated,
        "annotations": annotations,
        "kubeVersion": metadata.kube_version,
        "dependencies": listed.map(dependency).collect::<Vec<_>>(),
        "type": metadata.chart_type,
    }))
}

pub(crate) fn dependency(dependency: &Dependency) -> Json {
    let import = |import: &ImportValues| match import {
        ImportValues::Export(key) => Json::from(key.as_str()),
        ImportValues::Path { child, parent } => {
            serde_json::json!({"child": child, "parent": parent})
        }
        ImportValues::Other(_) => Json::Null,
    };
    let imports: Vec<_> = dependency.import_values.iter().map(import).collect();
    let mut json = without_empty(serde_json::json!({
        "version": dependency.version,
        "condition": dependency.condition,
        "tags": dependency.tags,
        "enabled": dependency.enabled,
        "import-values": imports,
        "alias": dependency.alias,
    }));
    json["name"] = dependency.name.as_str().into();
    json["repository"] = dependency.repository.as_str().into();
    json
}

fn lock(lock: &Lock) -> Json {
    serde_json::json!({
        "generated": lock.generated,
        "digest": lock.digest,
        "dependencies": lock.dependencies.iter().map(dependency).collect::<Vec<_>>(),
    })
}

/// Drops empty fields, as Go's `omitempty` does.
fn without_empty(mut json: Json) -> Json {
    if let Json::Object(fields) = &mut json {
        fields.retain(|_, value| match value {
            Json::Null | Json::Bool(false) => false,
            Json::String(text) => !text.is_empty(),
            Json::Array(items) => !items.is_empty(),
            Json::Object(entries) => !entries.is_empty(),
            _ => true,
        });
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release() -> StoredRelease {
        StoredRelease {
            name: "web".into(),
            info: Info {
                status: "deployed".into(),
                ..Info::default()
            },
            chart: serde_json::json!({"metadata": {"name": "web"}}),
            config: serde_json::json!({"a": 1}),
            manifest: "---\nkind: A\n".into(),
            hooks: Vec::new(),
            version: 3,
            namespace: "apps".into(),
        }
    }

    #[test]
    fn a_record_survives_the_round_trip_in_both_forms() {
        let record = encode(&release()).unwrap();
        assert_eq!(decode(record.as_bytes()).unwrap(), release());
        let twice = STANDARD.encode(&record);
        assert_eq!(decode(twice.as_bytes()).unwrap(), release());
        assert_eq!(secret_name("web", 3), "sh.helm.release.v1.web.v3");
    }

    #[test]
    fn damaged_records_are_refused() {
        assert!(decode(b"%").is_err());
        assert!(decode(STANDARD.encode(b"\x1f\x8b\x08 broken").as_bytes()).is_err());
        assert!(decode(STANDARD.encode(b"[]").as_bytes()).is_err());
    }
}
