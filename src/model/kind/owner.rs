//! Owner: a user or bot, and what its keys may do (D23). It is kept beside the other kinds and has no endpoint.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{
    Kind,
    fault::{Check, Faults},
    resource::{KindInfo, Offers, Resource, ViewContext},
    snapshot::Entry,
};

/// A user or bot that owns API keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Owner {
    /// What the owner's keys may do.
    pub role: Role,
}

/// What an owner's keys may do, from least to most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads, with every secret masked.
    Viewer,
    /// Reads and writes.
    #[default]
    Editor,
    /// Also creates keys for other owners.
    Admin,
}

impl Role {
    /// The word that stands for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Editor => "editor",
            Role::Admin => "admin",
        }
    }
}

impl Check for Owner {
    fn check(&self, _faults: &mut Faults) {}
}

impl Resource for Owner {
    const INFO: KindInfo = KindInfo {
        prefix: "usr_",
        collection: "/owners",
        list: "owners",
        offers: Offers::NONE,
        ..KindInfo::of::<Owner>(Kind::Owner, "Owner")
    };

    type View = Self;

    fn view(&self, _at: &Entry, _cx: &ViewContext<'_>) -> Self {
        self.clone()
    }
}
