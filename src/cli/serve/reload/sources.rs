//! The loops of the sources that `serve` follows, and what a reload changes in them (D91).

use crate::cli::prelude::*;
use crate::cli::serve::args::Args;
use crate::cli::serve::log;
use crate::cli::serve::source_config::ConfiguredSource;
use crate::cli::target::sources_of_store;
use crate::manifest::tree::remote::{Mirrors, no_mirrors};
use crate::reconcile::sources::handle::{FollowedSource, LONGEST_START, LoopGuard, SourceHandle, SourceObserver};
use crate::reconcile::sources::registry::{SourceRegistry, UnstartedParts};
use crate::reconcile::sync_loop::WatchedSource;
use crate::reconcile::sync_loop::condition::Reason;
use crate::reconcile::sync_loop::suspension::SourceRecords;
use crate::server::resources::write_policy::{WritePolicies, unknown_sources};

/// The sources that a reload has changed, by their names.
#[derive(Debug, Default)]
pub(super) struct SourceChanges {
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
}

impl SourceChanges {
    /// Whether all sources are as they were.
    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// The moment at which sources are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FollowedFrom {
    Start,
    /// A reload of a server that serves already: new sources do not make it unready.
    Reload,
}

/// The sources that a server follows. Their loops stop when it is dropped.
pub(crate) struct LiveSources<'a> {
    /// The options, with what a source does not set.
    args: &'a Args,
    store: Arc<Store>,
    /// Read with the first source: a server that follows none does not need them.
    records: Option<Arc<SourceRecords>>,
    /// The mirrors of remote repositories; none before a source has one.
    mirrors: Option<Arc<Mirrors>>,
    running: Vec<(ConfiguredSource, LoopGuard)>,
    list: SourceRegistry,
    observer: Option<Arc<dyn SourceObserver>>,
}

impl<'a> LiveSources<'a> {
    /// No sources yet. `observer` gets their states.
    pub(crate) fn new(args: &'a Args, store: Arc<Store>, observer: Option<Arc<dyn SourceObserver>>) -> Self {
        let (running, list) = (Vec::new(), SourceRegistry::default());
        Self { args, store, records: None, mirrors: None, running, list, observer }
    }

    /// Follows none from now on, whatever the configuration has, because parts of the server have not started, and shows the
    /// sources that wait for them. Beside a server that writes, none does.
    pub(crate) fn set_unstarted(&self, wanted: &[ConfiguredSource], reason: String) {
        let waiting = wanted.iter().filter(|_| self.store.followed_writer().is_none());
        let sources = waiting.map(|source| source.name.clone()).collect();
        self.list.set_unstarted(UnstartedParts { reason, sources });
    }

    /// The list for the API. It changes with the sources.
    pub(crate) fn list(&self) -> SourceRegistry {
        self.list.clone()
    }

    /// Warns of policies for sources that are neither followed nor own anything. Clients may apply them later.
    pub(crate) fn warn_of_unknown(&self, policies: &WritePolicies) {
        let mut known: BTreeSet<String> = self.list.iter().map(|handle| handle.source.clone()).collect();
        known.extend(self.list.unstarted().iter().flat_map(|parts| parts.sources.clone()));
        let fact = "is not followed and owns nothing";
        // Most servers need not look at all resources.
        if unknown_sources(policies, &known, fact).is_empty() {
            return;
        }
        known.extend(sources_of_store(&self.store.snapshot()));
        for Fault { message, help, .. } in unknown_sources(policies, &known, fact) {
            tracing::warn!("{message}{}", help.map(|help| format!("; {help}")).unwrap_or_default());
        }
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Follows the first sources, and returns what completes after their first runs, or when they take too long: a server
    /// that does not answer while it reads a large source would be restarted, and begin again.
    pub(crate) fn start(
        &mut self,
        wanted: Vec<ConfiguredSource>,
    ) -> Result<impl Future<Output = ()> + use<>, Diagnostic> {
        self.follow(wanted, FollowedFrom::Start)?;
        let syncs: Vec<_> = self.running.iter_mut().map(|(_, guard)| guard.first_sync()).collect();
        Ok(async move {
            let all = async {
                for sync in syncs {
                    sync.await;
                }
            };
            if tokio::time::timeout(LONGEST_START, all).await.is_err() {
                tracing::info!("The first syncs of the sources have not finished; the server is not ready until then.");
            }
        })
    }

    /// Waits a while for the first syncs of the sources that a reload has added or changed. Returns the names of those that
    /// cannot be read or applied, and of those that have not been synced yet.
    pub(super) fn first_results(&mut self, changes: &SourceChanges) -> (Vec<String>, Vec<String>) {
        let began = Instant::now();
        let is_new = |name: &String| changes.added.contains(name) || changes.changed.contains(name);
        let mut unseen = Vec::new();
        loop {
            unseen.clear();
            for (source, guard) in &mut self.running {
                if is_new(&source.name) && !guard.has_synced() {
                    unseen.push(source.name.clone());
                }
            }
            if unseen.is_empty() || began.elapsed() > LONGEST_START || self.list.is_stopping() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let has_failed = |guard: &LoopGuard| {
            let reason = guard.handle().health.condition().reason;
            let refused = matches!(reason, Reason::Invalid | Reason::Refused);
            refused || matches!(reason, Reason::Failed | Reason::FetchFailed | Reason::Panicked)
        };
        let seen = self.running.iter().filter(|(source, _)| is_new(&source.name) && !unseen.contains(&source.name));
        let failed = seen.filter(|(_, guard)| has_failed(guard)).map(|(source, _)| source.name.clone());
        (failed.collect(), unseen)
    }

    /// Follows other sources, after an error the same as before. Returns when those that are not followed any longer have
    /// ended their runs. Beside a server that writes, none is followed.
    pub(super) fn follow(
        &mut self,
        mut wanted: Vec<ConfiguredSource>,
        from: FollowedFrom,
    ) -> Result<SourceChanges, Diagnostic> {
        let forges = wanted.iter().map(|source| (source.name.clone(), source.forge.clone())).collect();
        let unstarted = self.list.unstarted();
        if let Some(parts) = &unstarted {
            self.set_unstarted(&wanted, parts.reason.clone());
        }
        if unstarted.is_some() || self.store.followed_writer().is_some() {
            wanted.clear();
        }
        let mut watched = self.prepare_new(&wanted)?;
        let records = self.records.clone();
        self.list.set_forges(forges);

        let named = |(source, guard): (ConfiguredSource, LoopGuard)| (source.name.clone(), (source, guard));
        let mut before: BTreeMap<String, (ConfiguredSource, LoopGuard)> =
            std::mem::take(&mut self.running).into_iter().map(named).collect();
        let (mut changes, mut failed) = (SourceChanges::default(), None);
        let mut replaced: Vec<LoopGuard> = Vec::new();
        for source in wanted {
            let known = before.remove(&source.name);
            let (Some(watched), Some(records)) = (watched.remove(&source.name), &records) else {
                self.running.extend(known);
                continue;
            };
            let taken_over = known.as_ref().map(|(_, guard)| guard.handle());
            match self.begin(watched, Arc::clone(records), taken_over.as_deref()) {
                Ok(guard) => {
                    let name = source.name.clone();
                    match known {
                        Some((_, old)) => {
                            replaced.push(old);
                            changes.changed.push(name);
                        }
                        None => {
                            if from == FollowedFrom::Reload {
                                guard.handle().health.set_optional();
                            }
                            changes.added.push(name);
                        }
                    }
                    self.running.push((source, guard));
                }
                Err(error) => {
                    let message = format!("cannot watch the manifests of source `{}`: {error}", source.name);
                    failed = Some(Diagnostic::error(Code::Unreadable, message));
                    self.running.extend(known);
                }
            }
        }
        let (names, removed): (Vec<String>, Vec<LoopGuard>) =
            before.into_iter().map(|(name, (_, guard))| (name, guard)).unzip();
        changes.removed = names;
        self.publish(replaced, removed);
        failed.map_or(Ok(changes), Err)
    }

    /// Prepares the sources that are not followed as they are. All that can fail is here, so that an error changes nothing.
    fn prepare_new(&mut self, wanted: &[ConfiguredSource]) -> Result<BTreeMap<String, WatchedSource>, Diagnostic> {
        self.prepare_mirrors(wanted)?;
        let Args { loading, ownership, drift, .. } = self.args;
        let mut watched = BTreeMap::new();
        for source in wanted.iter().filter(|source| self.running.iter().all(|(known, _)| known != *source)) {
            let followed = source.clone().into_followed(loading, ownership, *drift, self.mirrors.as_ref())?;
            let followed = FollowedSource { observer: self.observer.clone(), ..followed };
            watched.insert(source.name.clone(), WatchedSource::new(followed));
        }
        if self.records.is_none() && !watched.is_empty() {
            self.records = Some(Arc::new(SourceRecords::open(Arc::clone(&self.store))?));
        }
        Ok(watched)
    }

    /// Shows the running sources to requests, and ends the loops that were replaced or removed.
    fn publish(&self, replaced: Vec<LoopGuard>, removed: Vec<LoopGuard>) {
        removed.iter().for_each(LoopGuard::retire);
        // Requests see the new loops before the old ones have ended: a loop that has ended is not ready.
        self.list.set(self.running.iter().map(|(_, guard)| guard.handle()).collect());
        // Their runs end at the next step, and the new loops wait for that.
        replaced.iter().for_each(|guard| guard.handle().stop());
        drop(replaced);
        for guard in removed {
            guard.finish(|| self.list.is_stopping());
        }
        if let Some(mirrors) = &self.mirrors {
            mirrors.keep_only(&mirrors_of(mirrors, self.running.iter().map(|(source, _)| source)));
        }
    }

    /// Creates the folder of the mirrors if a source needs it.
    fn prepare_mirrors(&mut self, wanted: &[ConfiguredSource]) -> Result<(), Diagnostic> {
        if self.mirrors.is_none() && wanted.iter().any(|source| source.remote().is_some()) {
            let folder = self.store.sidecar_location().map(|on_disk| on_disk.folder);
            let mirrors = Mirrors::within(folder.as_deref()).map_err(|error| no_mirrors(&error))?;
            mirrors.recover(&mirrors_of(&mirrors, wanted.iter()));
            self.mirrors = Some(Arc::new(mirrors));
        }
        Ok(())
    }

    fn begin(
        &self,
        source: WatchedSource,
        records: Arc<SourceRecords>,
        before: Option<&SourceHandle>,
    ) -> notify::Result<LoopGuard> {
        let (reported, format, list) = (Arc::clone(&self.store), self.args.log_format, self.list.clone());
        source.start(Arc::clone(&self.store), records, before, move |report, author| {
            if let (Author::Source { source, .. }, Some(plan)) = (author, report.applied_plan()) {
                list.request_syncs_after(source, plan);
            }
            log::run(format, &report, author, reported.snapshot().revision);
        })
    }
}

fn mirrors_of<'s>(mirrors: &Mirrors, sources: impl Iterator<Item = &'s ConfiguredSource>) -> Vec<PathBuf> {
    sources.filter_map(ConfiguredSource::remote).map(|(name, url)| mirrors.folder_for(name, url)).collect()
}
