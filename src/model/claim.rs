//! Claims: which source owns a resource, and what it has promised of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::syntax::text::printable;

/// The source of surrounding manifests, in a state without a store (D107). No source can have this name.
pub(crate) const SURROUNDING_OWNER: &str = "(surrounding)";

/// A source in a sentence: "source `shop`", or what surrounding manifests are of.
pub(crate) fn source_in_words(source: &str) -> String {
    match source {
        SURROUNDING_OWNER => "another folder of `--with`".to_owned(),
        source => format!("source `{}`", printable(source)),
    }
}

/// Checks the name of a source that a store may have; the error explains what is wrong.
pub(crate) fn check_source_name(name: &str) -> Result<(), &'static str> {
    if name == SURROUNDING_OWNER {
        return Err("a source name cannot be `(surrounding)`, which stands for the manifests in `--with`");
    }
    let is_name = !name.trim().is_empty() && name.len() <= 255 && !name.contains(char::is_control);
    is_name.then_some(()).ok_or("a source name must have 1 to 255 bytes without control characters")
}

/// A source's ownership of a resource (D29).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The name of the source.
    pub source: String,
    /// The resource's name in the manifest.
    pub name: String,
    /// Whether plans cannot delete or replace the resource (D27).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prevent_destroy: bool,
    /// The former name, if resources exchange their names: the names alone do not show whether the exchange was applied
    /// (D54).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// The source that may take the resource over: the consent of this one. The source itself, if a command gave it the
    /// resource and its manifests have not declared it yet: until then, they must not delete it (D104).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_to: Option<String>,
    /// The source that owned the resource before. Its manifests may still declare the resource, which must not be created
    /// again (D104).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transferred_from: Option<String>,
    /// The name that the resource had in the manifests of `transferred_from`, if it has another one since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transferred_as: Option<String>,
    /// Whether a rollback took the resource from `transferred_from`, and the source has not declared it since. The manifests
    /// of both sources may still be those that the rollback undid (D78).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub returned: bool,
    /// The modules whose secrets came from the edge of a route, which required them, and the source of the edge, by the names
    /// of their slots. The secrets stay those of that source when the edge requires the module no longer, and when a rollback
    /// brings the route back (D103).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_secrets: Option<Arc<BTreeMap<String, String>>>,
}

impl Claim {
    /// A claim without promises.
    pub(crate) fn new(source: impl Into<String>, name: impl Into<String>) -> Self {
        Self { source: source.into(), name: name.into(), ..Self::default() }
    }

    /// Whether the resource is promised to a source, so that it stays although its owner does not declare it.
    pub(crate) fn is_promised(&self) -> bool {
        self.transfer_to.is_some()
    }

    /// Whether a rollback took the resource from a source.
    pub(crate) fn is_returned_by(&self, source: &str) -> bool {
        self.returned && self.source != source && self.transferred_from.as_deref() == Some(source)
    }

    /// Whether a rollback brought the resource back, which nobody else may take over and which stays undeclared.
    pub(crate) fn is_kept_by_rollback(&self) -> bool {
        self.returned && self.is_promised() && self.receiver().is_none()
    }

    /// The source from which a rollback brought back a resource that is kept.
    pub(crate) fn returned_from(&self) -> Option<&str> {
        self.transferred_from.as_deref().filter(|_| self.is_kept_by_rollback())
    }

    /// Whether a command gave the resource to the source, whose manifests have not declared it yet.
    pub(crate) fn awaits_manifest(&self) -> bool {
        !self.returned && self.is_promised() && self.receiver().is_none()
    }

    /// The other source that may take the resource over.
    pub(crate) fn receiver(&self) -> Option<&str> {
        self.transfer_to.as_deref().filter(|to| *to != self.source)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn no_source_is_called_as_the_surrounding_manifests() {
        assert!(check_source_name(SURROUNDING_OWNER).is_err_and(|reason| reason.contains(SURROUNDING_OWNER)));
        for name in ["surrounding", "shop/eu", "größe"] {
            assert_eq!(check_source_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_claim_without_a_transfer_is_written_as_before() {
        let claim = Claim::new("shop", "a");
        assert_eq!(serde_json::to_string(&claim).unwrap(), r#"{"source":"shop","name":"a"}"#);
        let offered = Claim { transfer_to: Some("pay".into()), ..claim };
        let text = r#"{"source":"shop","name":"a","transfer_to":"pay"}"#;
        assert_eq!(serde_json::to_string(&offered).unwrap(), text);
        assert_eq!(serde_json::from_str::<Claim>(text).unwrap(), offered);
    }
}
