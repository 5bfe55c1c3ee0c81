//! Event sources: event types that trigger a subscription. The type is the ID.

use super::prelude::*;

/// An event type that triggers the subscription.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EventSource {
    /// The event type, such as `ip_policy_created.v0`.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9_]*\.v[0-9]+$"))]
    pub r#type: String,
}

view! {
    /// The response form of [`EventSource`].
    pub struct EventSourceView(spec: &EventSource, at) {
        /// The event type.
        pub r#type: String = spec.r#type.clone(),
        /// The URI of this event source.
        pub uri: String = at.uri(),
    }
}

/// Whether a text is an event type: `[a-z][a-z0-9_]*\.v[0-9]+` (D22).
fn is_event_type(text: &str) -> bool {
    let Some((name, version)) = text.rsplit_once(".v") else { return false };
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && !version.is_empty()
        && version.bytes().all(|b| b.is_ascii_digit())
}

impl Check for EventSource {
    fn check(&self, faults: &mut Faults) {
        if self.r#type.is_empty() {
            faults.report(Fault::required("type").help("set an event type, such as `ip_policy_created.v0`"));
        } else if !is_event_type(&self.r#type) {
            let message = format!("`{}` is not an event type", printable(&self.r#type));
            let fault = Fault::new(Code::InvalidFormat, message).at("type");
            faults.report(fault.help("use a name and a version, such as `ip_policy_created.v0`"));
        }
    }
}

impl Resource for EventSource {
    const INFO: KindInfo =
        KindInfo { fixed: &["type"], required: &["type"], ..KindInfo::new::<EventSource>(Kind::EventSource) };

    type View = EventSourceView;

    fn example() -> Option<Value> {
        Some(json!({"type": "ip_policy_created.v0"}))
    }

    fn patch_example() -> Value {
        json!({})
    }
}
