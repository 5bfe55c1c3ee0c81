//! The names that most handlers of requests use: extractors, responses and errors, the caller and what it may do, the parts of
//! the state, and the model. The files behind them do not use this one.

pub(super) use std::collections::BTreeMap;
pub(super) use std::sync::Arc;
pub(super) use std::time::{Duration, Instant};

pub(super) use axum::body::{Body, Bytes};
pub(super) use axum::extract::{RawQuery, State};
pub(super) use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
pub(super) use axum::response::{IntoResponse, Response};
pub(super) use axum::routing::{MethodFilter, on};
pub(super) use schemars::JsonSchema;
pub(super) use serde::{Deserialize, Serialize};
pub(super) use serde_json::{Value, json};

pub(super) use super::auth::caller::Caller;
pub(super) use super::auth::permission::{self, Intent, SecretVisibility};
pub(super) use super::http::api_error::{ApiError, ApiResult};
pub(super) use super::http::page::{DEFAULT_LIMIT, Page, PagedList};
pub(super) use super::http::response::{self, json_response};
pub(super) use super::http::{conditional, query};
pub(super) use super::limits::blocking_task::{blocking, with_body};
pub(super) use super::limits::slots::{SlotPool, WorkPlace};
pub(super) use super::operations::checks::JsonBody;
pub(super) use super::operations::operation::{ApiOperation, QueryParameter};
pub(super) use super::state::{AppState, ServedStore};
pub(super) use super::telemetry::security::event::SecurityEvent;
pub(super) use super::telemetry::security::note::SecurityNote;
pub(super) use crate::model::{
    Author, Code, Diagnostic, Entry, Fault, Id, JsonError, Key, Kind, Operation, Role, Secrets, Snapshot, json,
};
pub(super) use crate::reconcile::run::cancel::Cancel;
pub(super) use crate::store::{Store, StoreError, clock};
pub(super) use crate::syntax::text::printable;
