//! What a manifest says about a transfer between sources: `transfer_from` and `transfer_to` (D104).

use crate::manifest::load::envelope::Metadata;
use crate::model::claim::check_source_name;
use crate::model::{Code, Fault};
use crate::syntax::text::{has_token, printable};

pub(super) const FROM: &str = "transfer_from";
pub(super) const TO: &str = "transfer_to";

/// The sources that a manifest names for a transfer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TransferMarkers {
    /// The source that the resource is taken from.
    pub from: Option<String>,
    /// The source that may take the resource over.
    pub to: Option<String>,
}

impl TransferMarkers {
    /// The markers of a manifest, unless they are an error.
    pub(crate) fn from_metadata(metadata: &Metadata) -> Self {
        if (metadata.transfer_from.is_some() || metadata.transfer_to.is_some()) && !faults(metadata).is_empty() {
            return Self::default();
        }
        Self { from: metadata.transfer_from.clone(), to: metadata.transfer_to.clone() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Returns the error of a manifest that names its own source. Without a store, the source is not known.
    pub(super) fn own_source(&self, source: &str) -> Option<Fault> {
        let own = |(field, name): (&'static str, &Option<String>)| (name.as_deref() == Some(source)).then_some(field);
        let field = [(FROM, &self.from), (TO, &self.to)].into_iter().find_map(own)?;
        let message = format!("`{field}` names the source itself, `{}`", printable(source));
        let fault = Fault::new(Code::NotAllowed, message).at(["metadata", field]);
        Some(fault.help(format!("name the other source, remove `{field}`, or correct `--source`")))
    }
}

/// The metadata of what is declared inside a manifest: it moves together with what contains it.
pub(crate) fn inherited_metadata(metadata: &Metadata) -> Metadata {
    let (transfer_from, transfer_to) = (metadata.transfer_from.clone(), metadata.transfer_to.clone());
    Metadata { transfer_from, transfer_to, ..Metadata::default() }
}

/// The markers of a manifest, by their fields.
fn markers(metadata: &Metadata) -> impl Iterator<Item = (&'static str, &String)> {
    let markers = [(FROM, &metadata.transfer_from), (TO, &metadata.transfer_to)];
    markers.into_iter().filter_map(|(field, name)| Some((field, name.as_ref()?)))
}

/// Checks the markers of a resource.
pub(crate) fn faults(metadata: &Metadata) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (field, name) in markers(metadata) {
        if has_token(name) {
            let fault = Fault::new(Code::NotAllowed, format!("`{field}` contains an API token"));
            faults.push(
                fault.at(["metadata", field]).help("remove it, and revoke the key with `edgewright keys revoke`"),
            );
        } else if check_source_name(name).is_err() {
            let fault = Fault::new(Code::InvalidFormat, format!("`{field}` must be the name of a source"));
            faults.push(fault.at(["metadata", field]).help("use 1 to 255 bytes without control characters"));
        }
    }
    if metadata.transfer_from.is_some() && metadata.transfer_from == metadata.transfer_to {
        let fault = Fault::new(Code::NotAllowed, format!("`{FROM}` and `{TO}` name the same source"));
        faults.push(fault.at(["metadata", TO]).help("keep the one whose transfer is still pending"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markers(from: Option<&str>, to: Option<&str>) -> TransferMarkers {
        TransferMarkers { from: from.map(str::to_owned), to: to.map(str::to_owned) }
    }

    #[test]
    fn markers_name_another_source() {
        assert!(markers(Some("a"), None).own_source("b").is_none());
        let fault = markers(None, Some("a")).own_source("a");
        assert_eq!(fault.map(|fault| fault.message), Some("`transfer_to` names the source itself, `a`".into()));
        let metadata = |from: Option<&str>, to: Option<&str>| Metadata {
            transfer_from: from.map(str::to_owned),
            transfer_to: to.map(str::to_owned),
            ..Metadata::default()
        };
        let codes = |faults: Vec<Fault>| faults.iter().map(|fault| fault.code).collect::<Vec<Code>>();
        assert!(faults(&metadata(Some("a"), Some("b"))).is_empty());
        assert_eq!(codes(faults(&metadata(Some("a"), Some("a")))), [Code::NotAllowed]);
        let invalid = faults(&metadata(Some(" "), Some("a\nb")));
        assert_eq!(codes(invalid), [Code::InvalidFormat, Code::InvalidFormat]);
    }
}
