//! API keys, which authenticate clients.

use std::sync::Arc;

use super::owner::is_owner_id;
use super::prelude::*;
use crate::model::id::Id;
use crate::model::key::Key;
use crate::model::key_scope::KeyScope;
use crate::model::reference::Reference;

/// An API key. The response to its creation is the only one that includes the token.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApiKey {
    /// A human-readable description, at most 255 bytes.
    #[schemars(length(max = 255))]
    pub description: String,
    /// Arbitrary user-defined data, at most 4096 bytes.
    #[schemars(length(max = 4096))]
    pub metadata: String,
    /// The user or bot that owns the key. Default: the owner of the API key that creates it, or a bot of the source if
    /// a command applies the source to a store or a server follows it. Only admins can set another owner.
    #[schemars(regex(pattern = r"^$|^(usr|bot)_[^/\s\x00-\x1f\x7f-\x9f]+$"), length(max = 255))]
    pub owner_id: String,
    /// Limits the key to a part of what its owner's role allows; without a scope, the key may do all of it.
    // Records without a scope are written as they were before there were scopes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-extension" = true))]
    pub scope: Option<Arc<KeyScope>>,
}

view! {
    /// The response form of [`ApiKey`].
    pub struct ApiKeyView(spec: &ApiKey, at) {
        /// The unique ID.
        pub id: String = at.key.id.to_string(),
        /// The URI of this API key.
        pub uri: String = at.uri(),
        /// The description.
        pub description: String = spec.description.clone(),
        /// The user-defined data.
        pub metadata: String = spec.metadata.clone(),
        /// The time of creation.
        pub created_at: String = at.created_at.to_string(),
        /// The bearer token; null except in the response to the creation.
        pub token: Option<String> = None,
        /// The user or bot that owns the key.
        pub owner_id: String = spec.owner_id.clone(),
        /// The scope; absent if the key has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-extension" = true))]
        pub scope: Option<Arc<KeyScope>> = spec.scope.clone(),
    }
}

impl Check for ApiKey {
    fn check(&self, faults: &mut Faults) {
        check::texts(faults, &self.description, &self.metadata);
        let owner = self.owner_id.as_str();
        if !owner.is_empty() && !is_owner_id(owner) {
            let fault = Fault::new(Code::InvalidFormat, "`owner_id` is not a valid owner ID").at("owner_id");
            faults.report(fault.help("use an ID that starts with `usr_` or `bot_`"));
        }
        if let Some(scope) = &self.scope {
            faults.within("scope", |faults| scope.check(faults));
        }
    }
}

impl Resource for ApiKey {
    const INFO: KindInfo = KindInfo { fixed: &["owner_id"], ..KindInfo::new::<ApiKey>(Kind::ApiKey) };

    type View = ApiKeyView;

    fn example() -> Option<Value> {
        Some(json!({"description": "CI of the shop team", "metadata": "{\"team\":\"shop\"}"}))
    }

    fn references(&self, visit: &mut dyn FnMut(Reference)) {
        visit(Reference { target: Key::new(Kind::Owner, Id::new(&self.owner_id)), path: "owner_id".into() });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::resource::any_resource::AnyResource;
    use crate::model::secrets::Secrets;

    fn stored(key: &ApiKey) -> String {
        String::from_utf8(key.to_bytes(Secrets::Revealed).unwrap()).unwrap()
    }

    #[test]
    fn a_key_without_a_scope_is_stored_as_before() {
        let former = r#"{"description":"ci","metadata":"","owner_id":"bot_ci"}"#;
        let read: ApiKey = serde_json::from_str(former).unwrap();
        assert_eq!((read.scope.as_ref(), stored(&read).as_str()), (None, former));
    }

    #[test]
    fn a_scope_is_changed_and_removed_like_other_fields() {
        let scope = KeyScope { apply: vec!["shop".into()], ..KeyScope::default() };
        let scoped = ApiKey { description: "ci".into(), scope: Some(Arc::new(scope)), ..ApiKey::default() };
        let read: ApiKey = serde_json::from_str(&stored(&scoped)).unwrap();
        assert_eq!(read, scoped);
        let fields = ["scope".to_owned()];
        let whole = ApiKey { description: "ci".into(), ..ApiKey::default() };
        let limited = whole.patched(&scoped, &fields).unwrap();
        assert!(limited.same(&scoped));
        assert!(limited.patched(&ApiKey::default(), &fields).unwrap().same(&whole));
    }
}
