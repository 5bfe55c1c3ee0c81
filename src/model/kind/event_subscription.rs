//! Event subscriptions. Another service owns them; edgewright manages their sources.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event_source::{EventSource, EventSourceView};
use crate::model::{
    Kind,
    base_urls::Ref,
    diagnostics::fault::{Check, Faults},
    resource::{KindInfo, Offers, Resource, ViewContext},
};

/// An event subscription, which another service owns, and its event types.
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
    /// Always empty: the owner of the subscription describes it.
    #[schemars(extend("x-extension" = true))]
    pub description: String,
    /// Always empty.
    #[schemars(extend("x-extension" = true))]
    pub metadata: String,
    /// The event types that trigger the subscription.
    pub sources: Vec<EventSourceView>,
    /// Always empty: the owner of the subscription knows its destinations.
    #[schemars(extend("x-extension" = true))]
    pub destinations: Vec<Ref>,
}

impl Check for EventSubscription {
    fn check(&self, _faults: &mut Faults) {}
}

impl Resource for EventSubscription {
    const INFO: KindInfo =
        KindInfo { offers: Offers::IMPLICIT, ..KindInfo::of::<EventSubscription>(Kind::EventSubscription) };

    type View = EventSubscriptionView;

    fn view(&self, at: &ViewContext<'_>) -> EventSubscriptionView {
        EventSubscriptionView {
            id: at.key.id.to_string(),
            uri: at.uri(),
            created_at: at.created_at.to_string(),
            description: String::new(),
            metadata: String::new(),
            sources: at.child_views::<EventSource>(),
            destinations: Vec::new(),
        }
    }
}
