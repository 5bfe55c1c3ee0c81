//! `/readyz`: whether a load balancer should send requests to this server (D52).

use crate::reconcile::sync_loop::condition::Status;
use crate::reconcile::sync_loop::health::Verdict;
use crate::server::handler_prelude::*;
use crate::server::telemetry::request_labels::READY;
use crate::store::engine::FollowedWriter;

pub(super) static GET: ApiOperation = ApiOperation::open(MethodFilter::GET, READY, |method| on(method, get))
    .any_query()
    .named("Service", "getReadiness", "Check that the server is ready")
    .described("Returns 200 when the server is ready for requests, or 503 with the reason. Further lines can contain warnings, and say that the server follows another one that writes, or that it answers from a local copy of the store.")
    .documented("503 431", |operation, _| operation.open("text/plain"));

/// Responds to a probe. It may try a write, which can block.
async fn get(State(state): State<AppState>) -> Response {
    let found = tokio::task::spawn_blocking(move || readiness(&state)).await;
    match found.unwrap_or_else(|_| Err("the server is stopping".to_owned())) {
        Ok(warnings) => {
            let lines = warnings.into_iter().map(|warning| format!("{warning}\n"));
            (READY_LINE.to_owned() + &lines.collect::<String>()).into_response()
        }
        Err(reason) => ApiError::with_code(Code::Unavailable, format!("{NOT_READY}{reason}")).into_response(),
    }
}

/// The first line of a response with 200.
const READY_LINE: &str = "ready\n";
/// The beginning of the message of one with 503.
const NOT_READY: &str = "not ready: ";
/// The beginning of a line that needs attention.
const WARNING: &str = "warning: ";
/// The beginning of what is said of one of several sources.
const NAMED_SOURCE: &str = "source `";

/// The time without an answer of the database after which what is served may be an old state.
const LONGEST_SILENCE: Duration = Duration::from_secs(5);

/// How long a server says that the database has lost changes.
const LOSS_SHOWN: Duration = Duration::from_secs(3600);

/// Returns warnings, or why the server is not ready. It may try a write.
pub(crate) fn readiness(app: &AppState) -> Result<Vec<String>, String> {
    let store = &app.served.store;
    let followed = store.followed_writer();
    if followed.is_none() {
        check_writes(store)?;
    }
    let (missing, mut warnings) = check_sources(&app.sources.registry);
    warnings.extend(store_warnings(store, followed.as_ref()));
    warnings.extend(file_warnings(app).map(str::to_owned));
    if missing.is_empty() { Ok(warnings) } else { Err(missing.join("; ")) }
}

/// What a body with 200 or the message of one with 503 says about the server and its store: all but the states of sources. Nothing
/// if it is no answer of this endpoint.
pub(crate) fn lines_about_server(said: &str) -> Vec<&str> {
    let reason = said.strip_prefix(NOT_READY).filter(|reason| !is_state_of_source(reason));
    let warnings = said.strip_prefix(READY_LINE).unwrap_or_default().lines();
    let about_server = |line: &&str| !line.strip_prefix(WARNING).is_some_and(is_state_of_source);
    reason.map(|_| said).into_iter().chain(warnings.filter(about_server)).collect()
}

/// Whether a text is what [`check_sources`] says of the state of a source.
fn is_state_of_source(said: &str) -> bool {
    let status = said.split_once(" (").map_or("", |(status, _)| status);
    let statuses = [Status::Synced, Status::OutOfSync, Status::Unknown];
    said.starts_with(NAMED_SOURCE) || statuses.iter().any(|it| it.to_string() == status)
}

/// Tries whether the store can be written to, and returns why not.
fn check_writes(store: &Store) -> Result<(), String> {
    let Err(error) = store.readiness() else { return Ok(()) };
    // The reason contains local paths, so it goes to the log and not to the client.
    tracing::error!(code = %error.code, reason = %error, "the store is not ready");
    Err(match (store.health(), store.outage()) {
        (Err(_), _) if store.is_shared() => "cannot write to the store; see the server log".to_owned(),
        (Err(_), _) => "cannot write to the store; restart the server".to_owned(),
        (Ok(()), Some(outage)) => format!(
            "no connection to the database of the store for {} s: changes are refused, reads are answered",
            outage.since.elapsed().as_secs()
        ),
        (Ok(()), None) => "cannot write to the store, for example because the disk is full".to_owned(),
    })
}

/// Returns why sources are not ready, and warnings of others.
fn check_sources(registry: &SourceRegistry) -> (Vec<String>, Vec<String>) {
    let (mut missing, mut warnings) = (Vec::new(), Vec::new());
    let all = registry.now();
    // One source needs no name.
    let several = all.len() > 1;
    for handle in all.iter() {
        let named = |state: String| if several { format!("{NAMED_SOURCE}{}`: {state}", handle.source) } else { state };
        match handle.health.verdict() {
            Verdict::Ready => {}
            Verdict::Degraded(state) => warnings.push(format!("{WARNING}{}", escaped(&named(state)))),
            Verdict::NotReady(reason) => missing.push(named(reason)),
        }
    }
    // The reason has local paths, as those of the sources do.
    match registry.unstarted() {
        Some(parts) if parts.sources.is_empty() => {
            let unstarted = "warning: parts of the server have not started, and are tried again; see the server log";
            warnings.push(unstarted.to_owned());
        }
        Some(_) => missing.push("sources have not started: see GET /sources or the log for the error".to_owned()),
        None => {}
    }
    (missing, warnings)
}

/// Returns warnings of a store that may be an old state, or whose copies are incomplete.
fn store_warnings(store: &Store, followed: Option<&FollowedWriter>) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(since) = store.stands_in_since() {
        let revision = store.snapshot().revision;
        warnings.push(format!(
            "local copy: the database does not answer; revision {revision} is served from the local copy since {since}"
        ));
    } else if let Some(writer) = followed {
        // Its URL is not for those who have no token.
        warnings.push("following: another server writes to the store".to_owned());
        if let Some(gone) = writer.gone_since.filter(|gone| gone.elapsed() > LONGEST_SILENCE) {
            let seconds = gone.elapsed().as_secs();
            warnings.push(format!(
                "warning: that server is gone for {seconds} s, and this one cannot take its place; see the server log"
            ));
        }
        let silence = writer.seen.elapsed();
        if silence > LONGEST_SILENCE {
            let seconds = silence.as_secs();
            warnings.push(format!(
                "warning: no news from the database for {seconds} s: newer changes are not known; see the server log"
            ));
        }
    }
    if store.went_back().is_some_and(|at| at.elapsed() < LOSS_SHOWN) {
        warnings.push("warning: the database has lost changes that were confirmed; see the server log".to_owned());
    }
    if store.is_copy_failing() {
        warnings.push("warning: cannot write the local copy of the store; see the server log".to_owned());
    }
    warnings
}

/// Returns warnings of files that could not be read or written. Their errors have local paths, so only the log has them.
fn file_warnings(app: &AppState) -> impl Iterator<Item = &'static str> {
    let configuration = app.sources.registry.is_outdated();
    let tls = app.telemetry.tls.as_ref().is_some_and(|tls| tls.is_outdated());
    let log = app.access.guards.log.as_ref().is_some_and(|log| log.is_failing());
    let all = [
        (configuration, "warning: the configuration file is not applied; see the server log"),
        (tls, "warning: cannot load the TLS files, and the last good ones stay in use; see the server log"),
        (log, "warning: cannot write the security log, and its events are lost; see the server log"),
    ];
    all.into_iter().filter_map(|(applies, warning)| applies.then_some(warning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_the_server_is_told_from_the_states_of_sources() {
        let follows = "following: another server writes to the store";
        let gone = "warning: that server is gone for 9 s, and this one cannot take its place; see the server log";
        let files = "warning: the configuration file is not applied; see the server log";
        let one = "warning: OutOfSync (Failed): cannot write to the store";
        let several = "warning: source `the database`: Unknown (Starting): the first sync has not finished";
        let body = ["ready", one, several, follows, gone, files, ""].join("\n");
        assert_eq!(lines_about_server(&body), [follows, gone, files]);
        let unwritable = "not ready: cannot write to the store; see the server log";
        assert_eq!(lines_about_server(unwritable), [unwritable]);
        for silent in ["ready\n", "not ready: OutOfSync (Invalid): 1 error", "not ready: source `a`: b", "Not found"] {
            assert!(lines_about_server(silent).is_empty(), "{silent}");
        }
    }
}
