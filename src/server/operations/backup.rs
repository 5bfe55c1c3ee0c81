//! `GET /backup`: everything in the store, with its history, as one file (D100). The secrets in it are encrypted, but the rest is
//! not, so only admins get it, and only where nobody can listen.

use axum::extract::ConnectInfo;
use tokio::sync::mpsc;

use crate::server::handler_prelude::*;
use crate::server::http::channel_body::ChannelBody;
use crate::store::maintenance::backup::Backup;

pub(crate) const PATH: &str = "/backup";
/// The pieces that wait for a client.
const PIECES: usize = 4;
/// How long a client may take for a piece.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The log target of reads of everything.
const AUDIT: &str = "audit";

pub(super) static GET: ApiOperation = ApiOperation::get(PATH, Intent::Backup, |method| on(method, get))
    .with_secrets("a backup contains the whole store")
    .named("Backups", "getBackup", "Back up the store")
    .described("Returns the current revision with its history as one file, for `edgewright restore`. Only admins can read it, and only over TLS or from the server's own machine. The secrets in it are encrypted with keys that need the store's master key. Each read is recorded in the audit log.")
    .documented("400 401 403 429 500 503", |operation, _| {
        operation
            .responds_with("200", "OK", "application/octet-stream", json!({"type": "string", "format": "binary"}))
            .header("200", "Cache-Control", "`no-store`.")
    });

/// Sends a backup of the current revision.
async fn get(
    State(AppState { served, admissions, .. }): State<AppState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    caller: Caller,
) -> ApiResult {
    let place = admissions.backups.for_owner(&caller.owner)?;
    let backup = blocking(move || Ok(served.store.backup()?)).await?;
    tracing::info!(
        target: AUDIT,
        actor = caller.key.as_str(),
        owner = caller.owner.as_str(),
        peer = %peer,
        revision = backup.revision(),
        bytes = backup.length(),
        "an admin makes a backup of the store"
    );
    let (length, name) = (backup.length(), format!("attachment; filename=\"revision-{}.backup\"", backup.revision()));
    let (sender, pieces) = mpsc::channel(PIECES);
    tokio::spawn(async move {
        let _held = place;
        send(backup, &sender).await;
    });
    let mut response = Response::new(Body::new(ChannelBody(pieces)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    response::set_header(headers, header::CONTENT_DISPOSITION, &name);
    Ok(response::noted(response, caller.note(SecurityEvent::BackupRead, "")))
}

/// Sends the pieces of a backup as fast as the client takes them. If this ends early, the response is shorter than it says.
async fn send(mut backup: Backup, sender: &mpsc::Sender<Result<Bytes, axum::Error>>) {
    loop {
        let read = tokio::task::spawn_blocking(move || {
            let piece = backup.next_piece();
            (backup, piece)
        });
        let Ok((rest, piece)) = read.await else { return };
        backup = rest;
        let piece = match piece {
            Ok(Some(piece)) => Ok(Bytes::from(piece)),
            Ok(None) => return,
            Err(error) => {
                tracing::error!(reason = %error, "a backup cannot be read");
                Err(axum::Error::new(error))
            }
        };
        let is_last = piece.is_err();
        match tokio::time::timeout(LONGEST_WAIT, sender.send(piece)).await {
            Ok(Ok(())) if !is_last => {}
            _ => return,
        }
    }
}
