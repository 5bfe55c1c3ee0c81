//! The `websocket_tcp_converter` module: converts WebSocket connections to TCP streams.

use super::prelude::*;

module! {
    /// Converts WebSocket connections to TCP streams to the upstream.
    pub struct WebsocketTcpConverter {}
}

impl Check for WebsocketTcpConverter {}

impl Module for WebsocketTcpConverter {
    const SLOT: &'static str = "websocket_tcp_converter";
    const EMPTY_IS_HARMLESS: bool = true;
    type View = Self;

    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        vec![Step::new(Stage::Dispatch, StepEffect::Passes, "converts a WebSocket to a TCP stream")]
    }
}
