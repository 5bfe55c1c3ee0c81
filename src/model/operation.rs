//! The only ways in which anything changes. A REST handler makes one Operation, the planner makes many, and both go
//! through the same commit.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Kind,
    id::Id,
    json::JsonError,
    key::Key,
    module::{AnyModule, Slot},
    resource::AnyResource,
    secret::Secret,
};

/// What a manifest source says of a resource that it owns (D29).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The name of the source.
    pub source: String,
    /// The name in the manifest.
    pub name: String,
    /// Whether a plan may delete or replace it (D27).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prevent_destroy: bool,
    /// The former name, if resources exchange their names: then the names alone do not tell whether the exchange has been
    /// made (D54).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
}

/// One change.
#[derive(Debug, Clone)]
pub enum Operation {
    /// A new resource with everything it has.
    Create {
        /// Its key; the id was chosen before (D11).
        key: Key,
        /// What it is.
        spec: Arc<dyn AnyResource>,
        /// The source that declares it, if one does.
        claim: Option<Claim>,
        /// The hash of an API key's token.
        token: Option<Secret>,
    },
    /// New values for the named fields; a module among them is replaced as a whole.
    Patch {
        /// The resource.
        key: Key,
        /// Where the values come from.
        spec: Arc<dyn AnyResource>,
        /// The fields that are given, in the order of the Spec.
        fields: Vec<String>,
    },
    /// A module configured anew: nothing of a former one is kept (D21).
    PutModule {
        /// The host.
        host: Key,
        /// The host's slot.
        slot: &'static Slot,
        /// The module.
        module: Arc<dyn AnyModule>,
    },
    /// A module removed.
    DeleteModule {
        /// The host.
        host: Key,
        /// The host's slot.
        slot: &'static Slot,
    },
    /// A resource removed.
    Delete {
        /// The resource.
        key: Key,
        /// Whether its children go with it, or must be gone already (D35).
        with_children: bool,
    },
    /// A source begins or ceases to own a resource, which itself stays as it is.
    Claim {
        /// The resource.
        key: Key,
        /// The owner from now on.
        claim: Option<Claim>,
    },
}

impl Operation {
    /// The resource that changes.
    pub fn key(&self) -> &Key {
        match self {
            Operation::Create { key, .. }
            | Operation::Patch { key, .. }
            | Operation::Delete { key, .. }
            | Operation::Claim { key, .. } => key,
            Operation::PutModule { host, .. } | Operation::DeleteModule { host, .. } => host,
        }
    }

    /// The call of the API that does the same, as method and path. A change of ownership has none, and neither have
    /// the kinds of the inside.
    pub fn call(&self) -> Option<(&'static str, String)> {
        if self.key().kind == Kind::Owner {
            return None;
        }
        Some(match self {
            Operation::Create { key, .. } => ("POST", key.collection_path()),
            Operation::Patch { key, .. } => ("PATCH", key.path()),
            Operation::PutModule { host, slot, .. } => ("PUT", format!("{}/{}", host.path(), slot.name)),
            Operation::DeleteModule { host, slot } => ("DELETE", format!("{}/{}", host.path(), slot.name)),
            Operation::Delete { key, .. } => ("DELETE", key.path()),
            Operation::Claim { .. } => return None,
        })
    }

    /// What the call sends. Secrets are masked, unless this runs inside of [`super::secret::reveal`].
    pub fn body(&self) -> Result<Value, JsonError> {
        Ok(match self {
            Operation::Create { spec, .. } => Value::Object(spec.to_json()?),
            Operation::Patch { spec, fields, .. } => {
                let given = spec.to_json()?.into_iter().filter(|(field, _)| fields.contains(field));
                Value::Object(given.collect())
            }
            Operation::PutModule { module, .. } => module.to_json()?,
            Operation::DeleteModule { .. } | Operation::Delete { .. } | Operation::Claim { .. } => Value::Null,
        })
    }
}

/// The call as `METHOD path`, or words for what has none.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.call(), self) {
            (Some((method, path)), _) => write!(f, "{method} {path}"),
            (None, Operation::Claim { key, claim: Some(claim) }) => {
                write!(f, "({key} is owned as {} by {})", claim.name, claim.source)
            }
            (None, Operation::Claim { key, claim: None }) => write!(f, "({key} is owned no longer)"),
            (None, other) => match other.body() {
                Ok(body) => write!(f, "({} {body})", other.key()),
                // An error of a display would be a panic.
                Err(_) => write!(f, "({})", other.key()),
            },
        }
    }
}

/// Who made a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Author {
    /// A request of the API.
    Api {
        /// The key that was used.
        key: Id,
        /// Its owner.
        owner: Id,
    },
    /// A reconciliation.
    Source {
        /// The name of the source.
        source: String,
        /// The commit of the manifests, where they are in git.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
        /// The key that was used, and its owner, where it came through the API.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        through: Option<(Id, Id)>,
    },
    /// The command line on the store itself.
    Local,
}

impl Author {
    /// A reconciliation on this machine.
    pub fn source(source: &str, commit: Option<String>) -> Self {
        Author::Source { source: source.to_owned(), commit, through: None }
    }
}
