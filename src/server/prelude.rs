//! The names that most files of the server use: those of HTTP, of the model and of the store. The `handler_prelude` has what
//! handlers use in addition.

pub(super) use crate::lock::Lock;
pub(super) use crate::model::{Author, BaseUrls, Code, Fault, Id, Key, Kind, KindInfo, Role, Secrets, Snapshot, rules};
pub(super) use crate::reconcile::sources::handle::SourceHandle;
pub(super) use crate::reconcile::sources::registry::SourceRegistry;
pub(super) use crate::store::{Store, StoreError, clock};
pub(super) use crate::syntax::text::{escaped, number_of, printable};
pub(super) use axum::body::Body;
pub(super) use axum::extract::Request;
pub(super) use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
pub(super) use axum::response::{IntoResponse, Response};
pub(super) use jiff::Timestamp;
pub(super) use schemars::JsonSchema;
pub(super) use serde::{Deserialize, Serialize};
pub(super) use serde_json::{Map, Value};
pub(super) use std::borrow::Cow;
pub(super) use std::collections::{BTreeMap, BTreeSet, HashMap};
pub(super) use std::fmt;
pub(super) use std::net::{IpAddr, SocketAddr};
pub(super) use std::path::PathBuf;
pub(super) use std::sync::Arc;
pub(super) use std::time::{Duration, Instant};
