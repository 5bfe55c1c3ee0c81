//! The loop that keeps a store true to a folder: events only mean "look again", and a timer covers lost ones.

use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use notify::{
    EventKind, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode},
};

use super::{ApplyError, Options, Planned, apply, measure, plan, token::TokenFiles};
use crate::{
    manifest::tree::{Recorder, Tree},
    model::{diagnostic::Diagnostic, operation::Author},
    plan::Plan,
    store::{CommitError, Store},
};

/// How long the folder must be quiet before it is looked at.
const QUIET: Duration = Duration::from_millis(150);
/// A folder that never gets quiet is looked at after this long.
const LONGEST_DEBOUNCE: Duration = Duration::from_secs(2);
/// How often the folder is looked at without an event.
const FULL_LOOK: Duration = Duration::from_secs(30);

/// After this long even what has not changed is looked at anew.
const LONGEST_SETTLED: Duration = Duration::from_secs(3600);

/// What the loop tells.
#[derive(Debug)]
pub enum Report {
    /// A plan was applied.
    Applied(Plan),
    /// The store is true to the folder.
    InSync {
        /// How many resources the source has.
        unchanged: usize,
        /// The revision of the store.
        revision: u64,
    },
    /// The folder is broken; the store keeps its last good state.
    Invalid(Planned),
    /// A part of the folder is broken; the rest is applied (D44).
    Partly(Planned),
    /// The plan must not run, or failed to.
    Failed(Vec<Diagnostic>),
}

/// A request to the loop.
#[derive(Debug)]
enum Signal {
    Look,
    Stop,
}

/// Stops the loop when it is dropped.
pub struct Handle {
    signals: Sender<Signal>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.signals.send(Signal::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reconciles once: what `reconcile` does, without a person to ask.
pub fn run_once(store: &Store, options: &Options) -> Report {
    let began = Instant::now();
    let report = look(store, options);
    let result = match report {
        Report::Applied(_) => "applied",
        Report::InSync { .. } => "in_sync",
        Report::Invalid(_) => "invalid",
        Report::Partly(_) => "partly_applied",
        Report::Failed(_) => "failed",
    };
    measure(result, began);
    report
}

fn look(store: &Store, options: &Options) -> Report {
    // A request of the API may commit between the plan and its application: then the plan is made anew.
    for _ in 0..10 {
        let planned = plan(options, &store.snapshot());
        let Some(plan) = &planned.plan else { return Report::Invalid(planned) };
        if !plan.refusals.is_empty() {
            return Report::Failed(plan.refusals.clone());
        }
        let whole = !planned.has_errors();
        if plan.is_empty() {
            return if whole {
                Report::InSync { unchanged: plan.unchanged, revision: plan.base }
            } else {
                Report::Partly(planned)
            };
        }
        let author = Author::source(&options.source, options.tree.commit());
        match apply(store, plan, author, &mut TokenFiles::default()) {
            Ok(_) if !whole => return Report::Partly(planned),
            Ok(_) => return Report::Applied(plan.clone()),
            Err(ApplyError::Commit(CommitError::Stale { .. })) => {}
            Err(error) => return Report::Failed(vec![error.diagnostic()]),
        }
    }
    Report::Failed(vec![Diagnostic::error(
        crate::model::code::Code::Stale,
        "the store changed during every attempt to apply the plan",
    )])
}

/// Looks at the manifests once, and then follows the paths that they are in, in a thread of its own. `report` is called
/// after each look that has something new to tell.
pub fn follow(
    store: Arc<Store>,
    mut options: Options,
    paths: &[PathBuf],
    mut report: impl FnMut(Report) + Send + 'static,
) -> notify::Result<Handle> {
    let (signals, received) = channel();
    // The watch comes first, so that no change falls between it and the first look.
    let mut folders = Folders::watch(paths, signals.clone())?;
    let recorder = Arc::new(Recorder::new(Arc::clone(&options.tree)));
    options.tree = Arc::clone(&recorder) as Arc<dyn Tree>;
    let first = run_once(store.as_ref(), &options);
    let mut told = digest(&first);
    let mut settled = Settled::of(&first);
    report(first);
    let thread = std::thread::Builder::new().name("reconcile".into()).spawn(move || {
        while wait(&received) {
            folders.follow_links();
            let began = Instant::now();
            if settled.as_ref().is_some_and(|it| it.holds(store.as_ref())) && recorder.unchanged() {
                measure("in_sync", began);
                continue;
            }
            let outcome = run_once(store.as_ref(), &options);
            settled = Settled::of(&outcome);
            // A fault that stays is told once, not with every look.
            let now = digest(&outcome);
            if told != now {
                report(outcome);
                told = now;
            }
        }
    });
    Ok(Handle { signals, thread: Some(thread.map_err(notify::Error::io)?) })
}

/// That the store was true to the folder.
struct Settled {
    revision: u64,
    at: Instant,
}

impl Settled {
    fn of(report: &Report) -> Option<Self> {
        let Report::InSync { revision, .. } = report else { return None };
        Some(Self { revision: *revision, at: Instant::now() })
    }

    /// Whether the store has not moved since. Lints look at the time too, so it does not hold for ever.
    fn holds(&self, store: &Store) -> bool {
        store.snapshot().revision == self.revision && self.at.elapsed() < LONGEST_SETTLED
    }
}

/// What a report says, in short. It is hashed as it is written, for it may be as large as the manifests.
fn digest(report: &Report) -> blake3::Hash {
    struct Writer(blake3::Hasher);
    impl fmt::Write for Writer {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.update(text.as_bytes());
            Ok(())
        }
    }
    let mut writer = Writer(blake3::Hasher::new());
    let _ = match report {
        // That somebody else has changed something is no news of the manifests.
        Report::InSync { unchanged, .. } => fmt::Write::write_fmt(&mut writer, format_args!("in sync {unchanged}")),
        Report::Partly(planned) => {
            let changes = planned.plan.as_ref().map(|plan| plan.changes.len());
            let told = (&planned.diagnostics, planned.left_out_names(), changes);
            fmt::Write::write_fmt(&mut writer, format_args!("partly {told:?}"))
        }
        _ => fmt::Write::write_fmt(&mut writer, format_args!("{report:?}")),
    };
    writer.0.finalize()
}

/// The folders that are watched.
struct Folders {
    watcher: notify::RecommendedWatcher,
    /// Each folder, and where it really is: behind a link that can be swapped.
    followed: Vec<(PathBuf, Option<PathBuf>)>,
}

impl Folders {
    fn watch(paths: &[PathBuf], signals: Sender<Signal>) -> notify::Result<Self> {
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading the manifests opens them: of all accesses only the end of a write means anything.
            let ignored = event.is_ok_and(
                |event| matches!(event.kind, EventKind::Access(kind) if kind != AccessKind::Close(AccessMode::Write)),
            );
            if !ignored {
                let _ = signals.send(Signal::Look);
            }
        })?;
        let mut folders = Self { watcher, followed: Vec::new() };
        for path in paths.iter().filter(|path| path.as_os_str() != "-") {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let parent = parent.map_or_else(|| PathBuf::from("."), PathBuf::from);
            // Editors replace files, and releases swap links: both are seen in the folder above.
            folders.watcher.watch(&parent, RecursiveMode::NonRecursive)?;
            if path.is_dir() {
                folders.watcher.watch(path, RecursiveMode::Recursive)?;
                folders.followed.push((path.clone(), path.canonicalize().ok()));
            }
        }
        Ok(folders)
    }

    /// A watch stays with the folder that a link led to; after a swap the new one is watched.
    fn follow_links(&mut self) {
        for (path, target) in &mut self.followed {
            let now = path.canonicalize().ok();
            if now.is_some() && now != *target {
                // The old folder may be gone, and its watch with it.
                let _ = self.watcher.unwatch(path);
                if self.watcher.watch(path, RecursiveMode::Recursive).is_ok() {
                    *target = now;
                }
            }
        }
    }
}

/// Waits for a reason to look, and for the folder to be quiet. False when the loop should end.
fn wait(received: &Receiver<Signal>) -> bool {
    match received.recv_timeout(FULL_LOOK) {
        Ok(Signal::Look) => {}
        Err(RecvTimeoutError::Timeout) => return true,
        Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
    }
    let since = Instant::now();
    while since.elapsed() < LONGEST_DEBOUNCE {
        match received.recv_timeout(QUIET) {
            Ok(Signal::Look) => {}
            Err(RecvTimeoutError::Timeout) => break,
            Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    true
}
