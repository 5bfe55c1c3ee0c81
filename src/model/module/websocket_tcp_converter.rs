//! The `websocket_tcp_converter` module: converts WebSocket connections to TCP streams.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Module;
use crate::model::{
    base_urls::Site,
    diagnostics::fault::{Check, Faults},
    key::Key,
    traffic::{Stage, Step, StepEffect, TracedRequest},
};

/// Converts WebSocket connections to TCP streams to the upstream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebsocketTcpConverter {
    /// Whether the module applies to traffic.
    pub enabled: bool,
}

impl Default for WebsocketTcpConverter {
    fn default() -> Self {
        Self { enabled: true }
    }
}

impl Check for WebsocketTcpConverter {
    fn check(&self, _faults: &mut Faults) {}
}

impl Module for WebsocketTcpConverter {
    const SLOT: &'static str = "websocket_tcp_converter";
    const EMPTY_IS_HARMLESS: bool = true;
    type View = Self;

    fn view(&self, _host: &Key, _site: &Site) -> Self {
        self.clone()
    }

    fn enabled(&self) -> bool {
        self.enabled
    }

    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        vec![Step::new(Stage::Dispatch, StepEffect::Passes, "converts a WebSocket to a TCP stream")]
    }
}
