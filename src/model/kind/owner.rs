//! Owners: users and bots, and the role of their API keys (D23). An owner has the endpoints of `/owners`,
//! and none that are generated for a kind.

use super::prelude::*;
use crate::model::id::is_opaque_id;

/// The prefixes of the IDs of users and bots.
const PREFIXES: [&str; 2] = ["usr_", "bot_"];

/// A user or bot that owns API keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Owner {
    /// The role of the owner's API keys.
    pub role: Role,
}

/// A role, from least to most privileged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Can read the gateway configuration and `/whoami`, and follow changes, and nothing else.
    Gateway,
    /// Can read, with every secret masked, and plan.
    Viewer,
    /// Like `viewer`, for pipelines that only plan: each pull request can have its own key.
    Planner,
    /// Can read and write.
    #[default]
    Editor,
    /// Can also create API keys for other owners, and set the roles of owners.
    Admin,
}

names!(Role: Gateway "gateway", Viewer "viewer", Planner "planner", Editor "editor", Admin "admin");

impl Role {
    /// Whether responses to the role have secrets. A gateway has an endpoint of its own for them.
    pub(crate) fn sees_secrets(self) -> bool {
        self >= Role::Editor
    }

    /// What a key without a scope may do, in words.
    pub(crate) fn without_scope(self) -> &'static str {
        match self {
            Role::Gateway => "gateway configuration",
            Role::Viewer | Role::Planner => "reads only",
            Role::Editor => "every source",
            Role::Admin => "everything",
        }
    }
}

/// Whether a text is valid as the ID of an owner.
pub(crate) fn is_owner_id(text: &str) -> bool {
    PREFIXES.iter().any(|prefix| text.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty())) && is_opaque_id(text)
}

impl Check for Owner {}

impl Resource for Owner {
    const INFO: KindInfo = KindInfo { offers: Offers::NONE, ..KindInfo::new::<Owner>(Kind::Owner) };

    type View = Self;
}
