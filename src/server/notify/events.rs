//! The events that a target can select.

use crate::server::prelude::*;

/// The name of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EventType {
    /// A revision created a resource.
    Created,
    /// A revision changed a resource.
    Updated,
    /// A revision deleted a resource.
    Deleted,
    /// Any of these.
    #[serde(rename = "revision.applied")]
    RevisionApplied,
    /// The manifests of a source have errors.
    #[serde(rename = "source.invalid")]
    SourceInvalid,
    /// The plan of a source was refused, or its run failed.
    #[serde(rename = "source.failed")]
    SourceFailed,
    /// Others have changed resources of a source, which are left as they are.
    #[serde(rename = "source.drifted")]
    SourceDrifted,
    /// A source is suspended.
    #[serde(rename = "source.suspended")]
    SourceSuspended,
    /// A source is in sync again.
    #[serde(rename = "source.recovered")]
    SourceRecovered,
    /// A certificate expires soon.
    #[serde(rename = "certificate.expiring")]
    CertificateExpiring,
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_written_as_it_is_named() {
        for event in [EventType::Created, EventType::RevisionApplied, EventType::CertificateExpiring] {
            assert_eq!(serde_json::to_value(event).unwrap(), event.to_string());
        }
    }
}
