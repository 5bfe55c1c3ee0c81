//! The gauges that are read from the server when the page is requested.

use super::exposition::{Exposition, Labels};
use super::inventory::Expiry;
use crate::model::build;
use crate::reconcile::sync_loop::condition::Status;
use crate::reconcile::sync_loop::status::SourceStatus;
use crate::routing::invariant::ProofAnswer;
use crate::server::limits::slots::admissions::Admissions;
use crate::server::prelude::*;
use crate::server::state::{AppState, SyncTimes, Telemetry};

/// The `id` of the certificate of the server itself.
const OWN_CERTIFICATE: &str = "server";

/// Writes the gauges of a server.
pub(super) fn write(app: &AppState, page: &mut Exposition) {
    let build = vec![("version", env!("CARGO_PKG_VERSION")), ("commit", build::commit().unwrap_or("unknown"))];
    page.gauge("edgewright_build_info", "1, with the version and the Git commit of the build.", [(build, 1.0)]);
    resources(app, page);
    invariants(&app.telemetry, page);
    store(&app.served.store, page);
    let (files, bytes) = app.caches.files.size();
    page.value("edgewright_file_cache_files", "Texts of sent files in memory.", files as f64);
    page.value("edgewright_file_cache_bytes", "Memory for the texts of sent files.", bytes as f64);
    page.value("edgewright_watchers", "Clients that watch changes.", app.admissions.watchers.running() as f64);
    admissions(&app.admissions, page);
    let in_flight = app.access.guards.in_flight.count();
    page.value("edgewright_http_requests_in_flight", "Requests that are being handled.", in_flight as f64);
    let bodies = app.access.guards.in_flight.bodies();
    page.value("edgewright_http_request_bodies_receiving", "Requests whose bodies are being received.", bodies as f64);
    if let Some(log) = &app.access.guards.log {
        let sequence = log.sequence() as f64;
        page.value("edgewright_security_log_sequence", "Number of the last line in the security log.", sequence);
    }
    let lags = app.telemetry.outbox.iter().flat_map(|outbox| outbox.lags());
    page.gauge(
        "edgewright_notification_lag_revisions",
        "Revisions that a target has not been notified of.",
        lags.map(|(target, lag)| (vec![("target", target)], lag as f64)),
    );
    let all = app.sources.registry.now();
    loops(&app.sources.registry, &all, page);
    followed(&all, page);
    drifted(app, &all, page);
    successes(&app.sources.syncs, &all, page);
}

/// The places of requests that cost much (D52).
fn admissions(admissions: &Admissions, page: &mut Exposition) {
    let all = admissions.all();
    let admitted = all.iter().flat_map(|slots| {
        let states = [("running", slots.running()), ("waiting", slots.waiting())];
        states.map(|(state, count)| (vec![("class", slots.name()), ("state", state)], count as f64))
    });
    page.gauge("edgewright_admitted_requests", "Requests that run or wait for their turn, by class.", admitted);
    let refused = all.iter().flat_map(|slots| {
        let class = slots.name();
        slots.refusals().map(|(reason, count)| (vec![("class", class), ("reason", reason)], count as f64))
    });
    page.counter(
        "edgewright_admission_refusals_total",
        "Costly requests that found no place, by class and reason.",
        refused,
    );
}

fn resources(app: &AppState, page: &mut Exposition) {
    let snapshot = app.served.store.snapshot();
    page.value("edgewright_revision", "The current revision of the store.", snapshot.revision as f64);
    let inventory = app.telemetry.inventories.count(&snapshot);
    drop(snapshot);
    let kinds = inventory.kinds.iter().map(|(kind, count)| (vec![("kind", kind.info().name)], *count as f64));
    page.gauge("edgewright_resources", "Resources of each kind.", kinds);
    page.value("edgewright_sources", "Sources that own resources.", inventory.by_source.len() as f64);
    let owned = inventory.owned.iter().flat_map(|(source, kinds)| {
        let labels = move |kind: &'static str| vec![("source", source.as_str()), ("kind", kind)];
        kinds.iter().map(move |(kind, count)| (labels(kind.info().name), *count as f64))
    });
    page.gauge("edgewright_source_resources", "Resources that a source owns, by kind.", owned);
    let own = app.telemetry.tls.iter().map(|tls| (vec![("id", OWN_CERTIFICATE), ("name", "")], tls.expiry() as f64));
    page.gauge(
        "edgewright_certificate_expiry_timestamp_seconds",
        "End of validity of a TLS certificate's leaf or a certificate authority, in Unix time.",
        own.chain(inventory.expiries.iter().map(end)),
    );
}

/// The answers about the invariants, as of the last proof.
fn invariants(telemetry: &Telemetry, page: &mut Exposition) {
    let proven = telemetry.proofs.last();
    let answers = ProofAnswer::ALL.map(|it| (vec![("answer", it.as_str())], proven.report.count(it) as f64));
    page.gauge("edgewright_invariants", "Invariants by whether they hold for all requests.", answers);
    let exempt = proven.report.invariants.iter().filter(|it| it.exempt > 0).count() as f64;
    page.value("edgewright_invariants_exempt", "Invariants with an exemption that counts for some requests.", exempt);
    let revision = proven.revision() as f64;
    page.value("edgewright_invariants_revision", "The revision whose invariants were judged last.", revision);
    page.gauge(
        "edgewright_exemption_expiry_timestamp_seconds",
        "End of the exemption of an invariant that ends first, in Unix time.",
        proven.expiries.iter().map(end),
    );
}

fn store(store: &Store, page: &mut Exposition) {
    let ready = store.readiness().is_ok();
    page.value("edgewright_store_ready", "1 while commits can succeed.", flag(ready));
    let statistics = store.statistics();
    page.value(
        "edgewright_store_size_bytes",
        "Size of the store's files: log, states and index.",
        statistics.bytes as f64,
    );
    let records = match statistics.oldest {
        0 => 0,
        oldest => (store.position() + 1).saturating_sub(oldest),
    };
    page.value("edgewright_history_records", "Records in the history.", records as f64);
    let lag = store.copy_lag() as f64;
    page.value("edgewright_local_copy_lag_records", "Records of the history that the local copy lacks.", lag);
}

/// A value of a followed source.
type SourceGauge = fn(&SourceHandle) -> f64;

/// Whether the loop of each source runs: of those that are followed, and of those that have not started.
fn loops(registry: &SourceRegistry, followed: &[Arc<SourceHandle>], page: &mut Exposition) {
    let unstarted = registry.unstarted();
    let waiting = unstarted.iter().flat_map(|parts| &parts.sources).map(|source| (label(source), flag(false)));
    let loops = followed.iter().map(|it| (label(&it.source), flag(it.health.is_up())));
    let help = "1 while a source's reconcile loop is running and not stuck.";
    page.gauge("edgewright_reconcile_loop_up", help, loops.chain(waiting));
}

/// The state of each followed source.
fn followed(all: &[Arc<SourceHandle>], page: &mut Exposition) {
    let gauges: [(&str, &str, SourceGauge); 5] = [
        ("edgewright_drift", "1 while the store does not match a source's manifests.", |it| {
            flag(it.health.condition().status == Status::OutOfSync)
        }),
        ("edgewright_route_tests", "Requests in the route tests of a source.", |it| it.status.tests().requests as f64),
        ("edgewright_route_tests_failed", "Requests of a source's route tests that are not as expected.", |it| {
            it.status.tests().failures as f64
        }),
        ("edgewright_source_suspended", "1 while a source is suspended.", |it| flag(it.suspension().is_some())),
        (
            "edgewright_reconcile_last_attempt_timestamp_seconds",
            "Start of the reconcile loop's last run, in Unix time; 0 for never.",
            |it| seconds(it.health.last_attempt()),
        ),
    ];
    for (name, help, value) in gauges {
        page.gauge(name, help, all.iter().map(|it| (label(&it.source), value(it))));
    }
    page.counter(
        "edgewright_drift_repairs_total",
        "Drifted resources that a source's reconcile loop has reverted.",
        all.iter().map(|it| (label(&it.source), it.repairs() as f64)),
    );
}

/// The current drift of each followed source.
fn drifted(app: &AppState, followed: &[Arc<SourceHandle>], page: &mut Exposition) {
    let statuses: Vec<SourceStatus> = followed.iter().map(|it| it.status.current()).collect();
    let all: Vec<(&SourceHandle, &SourceStatus)> = followed.iter().map(|it| &**it).zip(&statuses).collect();
    let drift = app.sources.recent_drift.current(&app.served.store, &all);
    page.gauge(
        "edgewright_drifted_resources",
        "Drifted resources of a source that are not reverted.",
        followed.iter().zip(drift).map(|(it, drift)| (label(&it.source), drift.count as f64)),
    );
}

/// The last successful sync of the followed sources, and of those that clients have sent.
fn successes(syncs: &SyncTimes, followed: &[Arc<SourceHandle>], page: &mut Exposition) {
    let is_followed = |source: &str| followed.iter().any(|it| it.source == source);
    let sent = syncs.all().into_iter().filter(|(source, _)| !is_followed(source));
    let mut all: Vec<(String, f64)> = sent.map(|(source, second)| (source, second as f64)).collect();
    all.extend(followed.iter().map(|it| (it.source.clone(), seconds(it.health.last_success()))));
    page.gauge(
        "edgewright_reconcile_last_success_timestamp_seconds",
        "Last time that the store matched a source's manifests, in Unix time; 0 for never.",
        all.iter().map(|(source, second)| (label(source), *second)),
    );
}

/// The sample of the end of a certificate or an exemption.
fn end(expiry: &Expiry) -> (Labels<'_>, f64) {
    (vec![("id", expiry.id.as_str()), ("name", expiry.name.as_str())], expiry.second as f64)
}

fn label(source: &str) -> Labels<'_> {
    vec![("source", source)]
}

fn flag(state: bool) -> f64 {
    if state { 1.0 } else { 0.0 }
}

fn seconds(at: Option<Timestamp>) -> f64 {
    at.map_or(0.0, |at| at.as_second() as f64)
}
