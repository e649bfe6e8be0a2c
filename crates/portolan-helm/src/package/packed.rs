//! A package whose files are compressed, for a chart that waits until it is rendered.

use std::sync::Arc;

use portolan_object::Compressed;

use super::{Content, Package};

/// The packed form of a [`Package`]: about a quarter of its files.
#[derive(Debug)]
pub struct PackedPackage {
    /// The package with empty files.
    emptied: Package,
    /// What was in the files, each after its length.
    contents: Compressed,
}

/// A length in the contents.
type Length = u64;

impl Package {
    /// Packs a copy.
    pub fn pack(&self) -> PackedPackage {
        let mut emptied = self.clone();
        let mut contents = Vec::new();
        let nothing = Content::from(&b""[..]);
        emptied.for_each_content(&mut |content| {
            let length = content.len() as Length;
            contents.extend_from_slice(&length.to_le_bytes());
            contents.extend_from_slice(content);
            content.clone_from(&nothing);
        });
        PackedPackage {
            emptied,
            contents: Compressed::new(&contents),
        }
    }

    /// Visits the content of every file, also of subcharts, in the same order each time.
    fn for_each_content(&mut self, visit: &mut impl FnMut(&mut Content)) {
        let files = self.templates.iter_mut().chain(&mut self.files);
        let contents = files.map(|file| &mut file.content);
        self.schema.iter_mut().chain(contents).for_each(&mut *visit);
        for subchart in &mut self.subcharts {
            Arc::make_mut(subchart).for_each_content(visit);
        }
    }
}

impl PackedPackage {
    /// The package.
    pub fn unpack(&self) -> Package {
        let contents = self.contents.bytes();
        let mut rest = contents.as_slice();
        let mut package = self.emptied.clone();
        package.for_each_content(&mut |content| {
            let next = take(&mut rest);
            *content = next.expect("`pack` wrote one for each file").into();
        });
        package
    }
}

fn take<'a>(contents: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = contents.split_at_checked(size_of::<Length>())?;
    let length = Length::from_le_bytes(length.try_into().ok()?);
    let (next, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *contents = rest;
    Some(next)
}

#[cfg(test)]
mod tests {
    use crate::{ChartFile, Package};

    #[test]
    fn an_unpacked_package_is_the_same() {
        let file = |name: &str, content: &[u8]| ChartFile::new(name.to_owned(), content);
        let package = Package::from_files(vec![
            file("Chart.yaml", b"apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            file("values.yaml", b"replicas: 1\n"),
            file("values.schema.json", b"{}"),
            file("templates/a.yaml", b"a: {{ .Values.replicas }}\n"),
            file("templates/empty.yaml", b""),
            file("icon.png", b"\x89PNG\xff"),
            file(
                "charts/part/Chart.yaml",
                b"apiVersion: v2\nname: part\nversion: 1.0.0\n",
            ),
            file("charts/part/templates/b.yaml", b"b: 1\n"),
        ])
        .expect("a chart");
        let unpacked = package.pack().unpack();
        assert_eq!(format!("{unpacked:?}"), format!("{package:?}"));
        assert_eq!(
            unpacked.subcharts[0].templates[0].content.as_ref(),
            b"b: 1\n"
        );
    }
}
