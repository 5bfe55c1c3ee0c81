//! Event subscriptions. Another service owns them; edgewright manages their sources.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event_source::{EventSource, EventSourceView};
use crate::model::{
    Kind,
    fault::{Check, Faults},
    resource::{KindInfo, Offers, Resource, ViewContext},
    snapshot::Entry,
};

/// An event subscription.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EventSubscription {}

/// The response form of [`EventSubscription`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct EventSubscriptionView {
    /// The subscription's ID.
    pub id: String,
    /// The URI of this subscription.
    pub uri: String,
    /// The time when the first source was added.
    pub created_at: String,
    /// The event types that trigger the subscription.
    pub sources: Vec<EventSourceView>,
}

impl Check for EventSubscription {
    fn check(&self, _faults: &mut Faults) {}
}

impl Resource for EventSubscription {
    const INFO: KindInfo = KindInfo {
        prefix: "esb_",
        collection: "/event_subscriptions",
        list: "event_subscriptions",
        children: Some(Kind::EventSource),
        implicit: true,
        offers: Offers::IMPLICIT,
        ..KindInfo::of::<EventSubscription>(Kind::EventSubscription, "EventSubscription")
    };

    type View = EventSubscriptionView;

    fn view(&self, at: &Entry, cx: &ViewContext<'_>) -> EventSubscriptionView {
        let sources = cx
            .snapshot
            .children(&at.key, Kind::EventSource)
            .filter_map(|source| Some(source.spec_as::<EventSource>()?.view(source, cx)));
        EventSubscriptionView {
            id: at.key.id.to_string(),
            uri: cx.site.uri(&at.key),
            created_at: at.created_at.to_string(),
            sources: sources.collect(),
        }
    }
}
