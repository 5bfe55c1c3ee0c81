//! The names that most files about runs use: those of the model, of plans and of the store.

pub(super) use crate::lock::Lock;
pub(super) use crate::manifest::tree::Tree;
pub(super) use crate::model::{Author, Code, Diagnostic, Drift, Fault, Id, Key, Operation, Severity, Snapshot};
pub(super) use crate::plan::{Change, Plan};
pub(super) use crate::store::{Attempt, CommitError, SpeculativeCommit, Store, StoreError, clock};
pub(super) use crate::syntax::text::number_of;
pub(super) use jiff::Timestamp;
pub(super) use serde::{Deserialize, Serialize};
pub(super) use std::collections::{BTreeMap, BTreeSet, HashMap};
pub(super) use std::path::PathBuf;
pub(super) use std::sync::Arc;
pub(super) use std::time::{Duration, Instant};
pub(super) use std::{fmt, fs};
