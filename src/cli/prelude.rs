//! The names that most files of the command line use: results and failures, the headings of options, the model, manifests and
//! their plans, and types of the standard library. The files behind them do not use this one.

pub(super) use super::failure::{CommandResult, Exit, Failure};
pub(super) use super::help;
pub(super) use crate::manifest::tree::Tree;
pub(super) use crate::model::key::segment;
pub(super) use crate::model::{
    Author, Code, Diagnostic, Fault, FieldPath, Id, Key, Kind, Name, Role, Secret, Secrets, Severity, Snapshot, json,
    nearest, suggest,
};
pub(super) use crate::plan::DeletionBudget;
pub(super) use crate::plan::report::Report;
pub(super) use crate::reconcile::{ApplyError, LintLevels, Options, PlanResult};
pub(super) use crate::server::VERSION_HEADER;
pub(super) use crate::store::history::commits::RevisionName;
pub(super) use crate::store::{Store, clock, ids, tokens};
pub(super) use crate::syntax::text::{escaped, number_of, plural, printable};
pub(super) use jiff::Timestamp;
pub(super) use serde::{Deserialize, Serialize};
pub(super) use serde_json::{Value, json};
pub(super) use std::collections::{BTreeMap, BTreeSet, HashMap};
pub(super) use std::fs;
pub(super) use std::path::{Path, PathBuf};
pub(super) use std::sync::Arc;
pub(super) use std::time::{Duration, Instant};
