//! The names that most commands use: results and failures, output, the choice between a store and a server, manifests and
//! their plans, the model, and types of the standard library.

pub(super) use super::{
    CommandResult, Exit, Failure, help,
    manifests::source_args::{Loading, Ownership, source_name},
    output::{
        Output,
        diagnostics::{self, say},
        print,
        progress::during,
    },
    store::store_args::StoreArgs,
    target::{ApiClient, store_or_server::StoreOrServer},
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
