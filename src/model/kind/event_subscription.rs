//! Event subscriptions. Another service owns them; edgewright manages their sources.

use super::event_source::{EventSource, EventSourceView};
use super::prelude::*;

/// An event subscription, which another service owns, and its event types.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EventSubscription {}

view! {
    /// The response form of [`EventSubscription`].
    pub struct EventSubscriptionView(_spec: &EventSubscription, at) {
        /// The subscription's ID.
        pub id: String = at.key.id.to_string(),
        /// The URI of this subscription.
        pub uri: String = at.uri(),
        /// The time when the first source was added.
        pub created_at: String = at.created_at.to_string(),
        /// Always empty: the owner of the subscription describes it.
        #[schemars(extend("x-extension" = true))]
        pub description: String = String::new(),
        /// Always empty.
        #[schemars(extend("x-extension" = true))]
        pub metadata: String = String::new(),
        /// The event types that trigger the subscription.
        pub sources: Vec<EventSourceView> = at.child_views::<EventSource>(),
        /// Always empty: the owner of the subscription knows its destinations.
        #[schemars(extend("x-extension" = true))]
        pub destinations: Vec<Ref> = Vec::new(),
    }
}

impl Check for EventSubscription {}

impl Resource for EventSubscription {
    const INFO: KindInfo =
        KindInfo { offers: Offers::IMPLICIT, ..KindInfo::new::<EventSubscription>(Kind::EventSubscription) };

    type View = EventSubscriptionView;
}
