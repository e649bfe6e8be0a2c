//! The files that patches and replacements are read from.

use portolan_yaml::Text;

use super::Directory;
use crate::error::{During, Error, Result};
use crate::load::read::{parse_config, read_resources};
use crate::resource::selector::Selector;
use crate::resource::{Origin, Resource};
use crate::transform::{LoadedPatch, Patch, Replacement, ReplacementEntry, read_json_patch};
use crate::value::jsonpatch::JsonPatch;

impl Directory<'_, '_> {
    pub(crate) fn load_patch(&self, patch: &Patch) -> Result<LoadedPatch> {
        let inline = patch.text.trim();
        let (content, file) = match (inline, patch.path.as_str()) {
            ("", "") => return Err(Error::refused("must specify one of patch and path")),
            ("", path) => {
                let content = self.loader.load(path);
                let content =
                    content.during(|| format!("failed to get the patch file from path({path})"))?;
                (content, self.loader.path_of(path))
            }
            (inline, "") => (
                inline.as_bytes().to_vec(),
                self.loader.root().join(self.file_name),
            ),
            _ => {
                return Err(Error::refused(
                    "patch and path can't be set at the same time",
                ));
            }
        };
        LoadedPatch::read(
            &content,
            patch,
            &Origin {
                file,
                ..Origin::default()
            },
            self.budget(),
        )
    }

    pub(crate) fn load_json_patch<'p>(
        &self,
        patch: &'p Patch,
    ) -> Result<(&'p Selector, JsonPatch)> {
        let target = patch
            .target
            .as_ref()
            .filter(|target| !target.id.name.is_empty());
        let Some(target) = target else {
            return Err(Error::refused("must specify the target name"));
        };
        let content = match (patch.text.as_str(), patch.path.as_str()) {
            ("", "") => return Err(Error::refused("empty file path and empty jsonOp")),
            ("", path) => self.loader.load(path)?,
            (text, "") => text.as_bytes().to_vec(),
            _ => {
                return Err(Error::refused(
                    "must specify a file path or jsonOp, not both",
                ));
            }
        };
        let origin = Origin {
            file: self.loader.path_of(&patch.path),
            ..Origin::default()
        };
        match read_json_patch(&content, &origin, self.budget())?.filter(|patch| !patch.is_empty()) {
            Some(loaded) => Ok((target, loaded)),
            None => Err(Error::refused("patch appears to be empty")),
        }
    }

    /// Entries are patches themselves, or files of patches; `inline` holds more.
    pub(crate) fn load_strategic_merges(
        &self,
        entries: &[Text],
        inline: &str,
    ) -> Result<Vec<Resource>> {
        let mut patches = Vec::new();
        for entry in entries {
            let origin = Origin {
                file: self.loader.root().join(self.file_name),
                ..Origin::default()
            };
            match read_resources(entry.as_bytes(), &origin, self.budget()) {
                Ok(inline) => patches.extend(inline),
                Err(error) if error.is_exceeded() => return Err(error),
                Err(_) => {
                    let origin = Origin {
                        file: self.loader.path_of(entry),
                        ..Origin::default()
                    };
                    let content = self.loader.load(entry)?;
                    patches.extend(read_resources(&content, &origin, self.budget())?);
                }
            }
        }
        if !inline.is_empty() {
            let origin = Origin {
                file: self.loader.root().join(self.file_name),
                ..Origin::default()
            };
            patches.extend(read_resources(inline.as_bytes(), &origin, self.budget())?);
        }
        if patches.is_empty() {
            return Err(Error::refused("patch appears to be empty"));
        }
        Ok(patches)
    }

    pub(crate) fn load_replacements(
        &self,
        entries: &[ReplacementEntry],
    ) -> Result<Vec<Replacement>> {
        let mut all = Vec::new();
        for entry in entries {
            if let Some(inline) = &entry.inline {
                all.push(inline.clone());
            } else {
                let content = self.loader.load(&entry.path)?;
                let document = parse_config(&content, &entry.path, self.budget())?;
                all.extend(Replacement::read_file(&document)?);
            }
        }
        Ok(all)
    }
}
