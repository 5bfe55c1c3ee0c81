//! The names that most files about manifests use: those of the model, of texts, and of the standard library.

pub(super) use crate::background::yield_to_requests;
pub(super) use crate::lint::{Level, ManifestFacts, Subject};
pub(super) use crate::lock::Lock;
pub(super) use crate::model::{
    AnyResource, Claim, Code, Desired, Diagnostic, Fault, FaultTarget, HttpsEdge, HttpsEdgeRoute, Id, JsonError, Key,
    Kind, Secret, Snapshot,
};
pub(super) use crate::syntax::text::{printable, printable_path};
pub(super) use jiff::Timestamp;
pub(super) use serde::{Deserialize, Serialize};
pub(super) use serde_json::{Map, Value};
pub(super) use std::collections::{BTreeMap, BTreeSet};
pub(super) use std::fmt;
pub(super) use std::path::PathBuf;
pub(super) use std::sync::{Arc, OnceLock};
