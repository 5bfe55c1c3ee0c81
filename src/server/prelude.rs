//! The names that most handlers of requests use: extractors, responses and errors, the caller and what it may do, the parts of
//! the state, and the model. The files behind them do not use this one.

pub(super) use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

pub(super) use axum::{
    body::{Body, Bytes},
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{MethodFilter, on},
};
pub(super) use schemars::JsonSchema;
pub(super) use serde::{Deserialize, Serialize};
pub(super) use serde_json::{Value, json};

pub(super) use super::{
    auth::{
        caller::Caller,
        permission::{self, Intent, SecretVisibility},
    },
    http::{
        api_error::{ApiError, ApiResult},
        conditional,
        page::{DEFAULT_LIMIT, Page, PagedList},
        query,
        response::{self, json_response},
    },
    limits::{
        blocking_task::{blocking, with_body},
        slots::{SlotPool, WorkPlace},
    },
    operations::{
        checks::JsonBody,
        operation::{ApiOperation, QueryParameter},
    },
    state::{AppState, ServedStore},
    telemetry::security::{event::SecurityEvent, note::SecurityNote},
};
pub(super) use crate::{
    model::{
        Author, Code, Diagnostic, Entry, Fault, Id, JsonError, Key, Kind, Operation, Role, Secrets, Snapshot, json,
    },
    reconcile::run::cancel::Cancel,
    store::{Store, StoreError, clock},
    syntax::text::printable,
};
