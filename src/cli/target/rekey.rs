//! New keys for the store of a running server (D96).

use super::client::{ApiClient, foreign_response, refused};
use crate::{
    cli::{Failure, output::progress::during},
    model::{
        diagnostics::{code::Code, diagnostic::Diagnostic},
        json,
        secrets::secret::Secrets,
    },
    server::operations::rekey::{PATH, RekeyReport, RekeyRequest},
};

/// Has a server encrypt its store with new keys.
pub(crate) fn rekey_through(client: &ApiClient, request: &RekeyRequest) -> Result<RekeyReport, Failure> {
    let url = client.address(PATH);
    let body = json::bytes(request, Secrets::Masked)?;
    let answer = during("Encrypting", || client.post(&url, &body));
    // Without a response, it is unknown what was done.
    let (status, text) = answer.map_err(|missing| match missing.may_be_sent {
        true => Diagnostic::error(Code::Timeout, missing.message(&url))
            .help("run the command again; it can be repeated at any time")
            .into(),
        false => missing.failure(&url),
    })?;
    if status != 200 {
        return Err(refused(&url, status, &text));
    }
    serde_json::from_slice(&text).map_err(|_| foreign_response(&url, status))
}
