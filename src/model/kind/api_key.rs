//! API key: what a client authenticates with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{
    Kind, check,
    code::Code,
    fault::{Check, Fault, Faults, Path},
    id::{Id, is_opaque_id},
    key::Key,
    resource::{KindInfo, Reference, Resource, ViewContext},
    snapshot::Entry,
};

/// A key for this API. Its token is shown once, in the answer to its creation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApiKey {
    /// Human-readable description, at most 255 bytes.
    #[schemars(length(max = 255))]
    pub description: String,
    /// Arbitrary data of yours, at most 4096 bytes.
    #[schemars(length(max = 4096))]
    pub metadata: String,
    /// The user or bot that owns the key; by default the one who creates it. Only admins may name another.
    #[schemars(regex(pattern = r"^$|^(usr|bot)_[^/\s\x00-\x1f\x7f-\x9f]+$"), length(max = 255))]
    pub owner_id: String,
}

/// The response form of [`ApiKey`].
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApiKeyView {
    /// Unique identifier.
    pub id: String,
    /// Address of this key.
    pub uri: String,
    /// Human-readable description.
    pub description: String,
    /// Arbitrary data of yours.
    pub metadata: String,
    /// When it was created.
    pub created_at: String,
    /// The bearer token: only in the answer to the creation, null ever after.
    pub token: Option<String>,
    /// The user or bot that owns the key.
    pub owner_id: String,
}

impl Check for ApiKey {
    fn check(&self, faults: &mut Faults) {
        check::texts(faults, &self.description, &self.metadata);
        let owner = self.owner_id.as_str();
        let known_prefix =
            ["usr_", "bot_"].iter().any(|prefix| owner.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()));
        let good = owner.is_empty() || (known_prefix && is_opaque_id(owner));
        if !good {
            faults.within("owner_id", |faults| {
                faults.report(
                    Fault::new(Code::InvalidFormat, "this cannot be an owner").help("an owner is `usr_…` or `bot_…`"),
                );
            });
        }
    }
}

impl Resource for ApiKey {
    const INFO: KindInfo = KindInfo {
        prefix: "ak_",
        collection: "/api_keys",
        list: "keys",
        fixed: &["owner_id"],
        ..KindInfo::of::<ApiKey>(Kind::ApiKey, "ApiKey")
    };

    type View = ApiKeyView;

    fn view(&self, at: &Entry, cx: &ViewContext<'_>) -> ApiKeyView {
        ApiKeyView {
            id: at.key.id.to_string(),
            uri: cx.site.uri(&at.key),
            description: self.description.clone(),
            metadata: self.metadata.clone(),
            created_at: at.created_at.to_string(),
            token: None,
            owner_id: self.owner_id.clone(),
        }
    }

    fn references(&self, visit: &mut dyn FnMut(Reference)) {
        visit(Reference {
            target: Key::new(Kind::Owner, Id::new(&self.owner_id)),
            path: Path::root().join("owner_id"),
        });
    }
}
