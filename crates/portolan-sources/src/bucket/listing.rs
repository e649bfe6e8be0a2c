//! One page of a bucket's list: the few elements of its XML that are needed.

/// A page of objects, as a server of buckets lists them.
#[derive(Debug, PartialEq, Eq)]
pub struct BucketPage {
    pub(super) objects: Vec<BucketObject>,
    /// The token of the next page.
    pub(super) next: Option<String>,
}

/// An object by its key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BucketObject {
    pub(super) key: String,
    pub(super) size: u64,
}

impl BucketPage {
    /// Reads a page; keys that end in a slash stand for directories and are left out.
    pub fn parse(body: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(body).map_err(|_| "its list is not UTF-8")?;
        if !text.contains("<ListBucketResult") {
            return Err("its list is not a ListBucketResult");
        }
        let mut objects = Vec::new();
        let mut rest = text;
        while let Some((object, after)) = element(rest, "Contents") {
            rest = after;
            let (key, _) = element(object, "Key").ok_or("an object has no key")?;
            let size = element(object, "Size").and_then(|(size, _)| size.parse().ok());
            let key = unescaped(key);
            if !key.ends_with('/') {
                objects.push(BucketObject {
                    key,
                    size: size.unwrap_or(0),
                });
            }
        }
        let is_cut = element(text, "IsTruncated").is_some_and(|(cut, _)| cut.trim() == "true");
        let next = element(text, "NextContinuationToken").map(|(token, _)| unescaped(token));
        match (is_cut, next) {
            (true, None) => Err("its list breaks off"),
            (true, next) => Ok(Self { objects, next }),
            (false, _) => Ok(Self {
                objects,
                next: None,
            }),
        }
    }
}

/// The content of the first element of a name, and what follows it.
fn element<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let (_, after) = text.split_once(&format!("<{name}>"))?;
    after.split_once(&format!("</{name}>"))
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#34;", "\"")
        .replace("&apos;", "'")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_the_next_page_are_read() {
        let page = BucketPage::parse(
            b"<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><IsTruncated>true</IsTruncated>\
              <Contents><Key>a/b&amp;c.yaml</Key><Size>12</Size></Contents>\
              <Contents><Key>a/</Key><Size>0</Size></Contents>\
              <NextContinuationToken>t</NextContinuationToken></ListBucketResult>",
        );
        let object = BucketObject {
            key: "a/b&c.yaml".to_owned(),
            size: 12,
        };
        let expected = BucketPage {
            objects: vec![object],
            next: Some("t".to_owned()),
        };
        assert_eq!(page, Ok(expected));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for bad in [
            &b"<html/>"[..],
            b"\xff",
            b"<ListBucketResult><IsTruncated>true</IsTruncated>",
        ] {
            assert!(BucketPage::parse(bad).is_err());
        }
    }
}
