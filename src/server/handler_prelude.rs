//! The names that most handlers of requests use: those of the `prelude`, extractors, responses and errors, the caller and what it
//! may do, and the parts of the state. The files behind them use the `prelude` alone.

pub(super) use axum::body::Bytes;
pub(super) use axum::extract::{RawQuery, State};
pub(super) use axum::routing::{MethodFilter, on};
pub(super) use serde_json::json;

pub(super) use super::auth::authentication::AccessControl;
pub(super) use super::auth::caller::Caller;
pub(super) use super::auth::permission::{self, Intent, SecretVisibility};
pub(super) use super::http::api_error::{ApiError, ApiResult};
pub(super) use super::http::conditional::Precondition;
pub(super) use super::http::page::{DEFAULT_LIMIT, Page, PagedList};
pub(super) use super::http::response::{self, json_response};
pub(super) use super::http::{conditional, query};
pub(super) use super::limits::blocking_task::{blocking, with_body};
pub(super) use super::limits::slots::admissions::Admissions;
pub(super) use super::limits::slots::{SlotPool, WorkPlace};
pub(super) use super::operations::checks::{JsonBody, SearchRequest};
pub(super) use super::operations::operation::{ApiOperation, QueryParameter};
pub(super) use super::prelude::*;
pub(super) use super::state::{AppState, ServedStore};
pub(super) use super::telemetry::security::event::SecurityEvent;
pub(super) use super::telemetry::security::note::SecurityNote;
pub(super) use crate::model::{Diagnostic, Entry, JsonError, Operation, json};
pub(super) use crate::reconcile::run::cancel::Cancel;
