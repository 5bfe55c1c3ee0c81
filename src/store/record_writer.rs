//! Writes a record of the history whose resources come in pieces: the record of a first commit has all resources of an estate.

use bytes::Bytes;

use super::{StoreError, history::Record};

/// The canonical form of a record that is being written.
#[derive(Default)]
pub(super) struct RecordWriter {
    bytes: Vec<u8>,
    has_resources: bool,
}

impl RecordWriter {
    /// Begins with everything but the resources and the digest of the changes, which the record must not have yet.
    pub(super) fn begin(record: &Record) -> Result<Self, StoreError> {
        let mut bytes = record.to_bytes()?;
        bytes.pop();
        Ok(Self { bytes, has_resources: false })
    }

    /// Makes room for more resources, of about so many bytes.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Adds resources: JSON of [`Touched`](super::history::Touched), with commas between them.
    pub(super) fn add(&mut self, resources: &[u8]) {
        if resources.is_empty() {
            return;
        }
        self.bytes.extend_from_slice(if self.has_resources { b"," } else { br#","resources":["# });
        self.bytes.extend_from_slice(resources);
        self.has_resources = true;
    }

    /// Returns the record with the digest of its changes in hexadecimal digits.
    pub(super) fn finish(self, changes: &str) -> Bytes {
        let Self { mut bytes, has_resources } = self;
        bytes.extend_from_slice(if has_resources { b"]" } else { b"" });
        if !changes.is_empty() {
            bytes.extend_from_slice(format!(",\"changes\":\"{changes}\"").as_bytes());
        }
        bytes.push(b'}');
        bytes.into()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{
        model::{Kind, json, operation::Author, secret::Secrets},
        store::history::{Outcome, Touched},
    };

    #[test]
    fn a_record_has_one_form_whether_its_resources_are_written_before_or_not() {
        let touched = |path: &str| Touched {
            kind: Kind::HttpsEdge,
            path: path.into(),
            name: None,
            source: None,
            declared_at: Some("a.yaml:1".into()),
            reverted_drift: Vec::new(),
            before: None,
            after: Some(serde_json::json!({"b": 1, "a": "\"}"})),
        };
        for paths in [vec![], vec!["/a"], vec!["/a", "/b"]] {
            for changes in ["", "00ff"] {
                let head = Record {
                    position: 1,
                    revision: Some(1),
                    at: Timestamp::UNIX_EPOCH,
                    milliseconds: 0,
                    author: Author::Local,
                    source: None,
                    outcome: Outcome::Applied,
                    message: String::new(),
                    calls: vec!["POST /edges/https".into()],
                    resources: Vec::new(),
                    changes: String::new(),
                    scrubbed: Vec::new(),
                };
                let resources: Vec<Touched> = paths.iter().copied().map(touched).collect();
                let mut writer = RecordWriter::begin(&head).unwrap();
                resources.iter().for_each(|it| writer.add(&json::bytes(it, Secrets::Masked).unwrap()));
                let whole = Record { resources, changes: changes.into(), ..head };
                assert_eq!(
                    std::str::from_utf8(&writer.finish(changes)).unwrap(),
                    String::from_utf8(whole.to_bytes().unwrap()).unwrap()
                );
            }
        }
    }
}
