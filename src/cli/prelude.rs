//! The names that most files of the command line use: results and failures, the headings of options, the model, manifests and
//! their plans, and types of the standard library. The files behind them do not use this one.

pub(super) use super::{
    failure::{CommandResult, Exit, Failure},
    help,
};
pub(super) use crate::{
    manifest::tree::{Disk, Tree},
    model::{
        Author, Code, Diagnostic, Fault, Id, Key, Kind, Role, Secret, Secrets, Severity, Snapshot,
        diagnostics::{diagnostic::Name, fault::nearest},
        json,
        key::segment,
    },
    plan::{Plan, report::Report},
    reconcile::{ApplyError, LintLevels, Options, PlanResult},
    store::{Store, clock, history::commits::RevisionName, ids, tokens},
    syntax::text::{escaped, printable},
};
pub(super) use serde_json::Value;
pub(super) use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
