//! The commit of a request that changes a resource.
//!
//! Whether it breaks an invariant is judged before the commit (D120), in which all other writers would wait for that. What is
//! judged is the newest state, and the place for that is held until the commit has entered the queue of the store: the changes of an
//! owner, of which one is judged at a time, never overtake each other. If others have changed meanwhile what the verdict depends
//! on, the change is judged again. It is never judged in the commit: whoever changes the same hosts all the time delays this
//! change, and no others.

use super::key_owner;
use super::managed_resources::WriteCheck;
use super::render::{render, render_module};
use super::write_effect::effect_warnings;
use crate::model::{Role, Slot};
use crate::server::handler_prelude::*;
use crate::server::replicas::read_your_writes::set_revision;
use crate::store::{Attempt, Declined, JudgedOperations, NextState, QueuedCommit};

/// How often a change is judged at least, and for how long, before it is refused because others overtake it each time.
const LEAST_JUDGEMENTS: usize = 3;
const LONGEST_JUDGING: Duration = Duration::from_secs(10);
/// When a change that was overtaken should be sent again, in seconds.
const RETRY_AFTER: u64 = 1;
/// The most invariants of which nobody can tell that a response names.
const MOST_DOUBTS: usize = 4;

/// A write in the queue of the store, what to warn of, the resource before it, and its changes to keys and owners.
type EnteredWrite =
    (Result<QueuedCommit<WriteStop>, Declined<WriteStop>>, Vec<String>, Option<Arc<Entry>>, Option<SecurityNote>);

/// Why a write did not enter the queue as a commit.
enum WriteStop {
    /// Others have changed what its judgement depends on.
    Overtaken,
    /// The change is not allowed.
    Refused(ApiError),
}

impl From<ApiError> for WriteStop {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

/// A change of a resource that a request asks for.
pub(super) struct PendingWrite {
    pub(super) app: AppState,
    pub(super) caller: Caller,
    /// The address of the client, if it is known.
    pub(super) address: Option<IpAddr>,
    pub(super) key: Key,
    /// The module that changes, if it is only one.
    pub(super) slot: Option<&'static Slot>,
    pub(super) operations: Vec<Operation>,
    /// The role that the request gives the owner of its key.
    pub(super) owner_role: Option<Role>,
    pub(super) owned: WriteCheck,
    pub(super) precondition: Precondition,
    /// Whether entering the queue takes no longer than for others.
    pub(super) quick: bool,
}

/// A write that was committed.
pub(super) struct CommittedWrite {
    /// The state after it.
    pub(super) snapshot: Arc<Snapshot>,
    warnings: Vec<String>,
    /// Its changes to keys and owners, for the security log.
    note: Option<SecurityNote>,
}

impl CommittedWrite {
    /// Completes the response to its request.
    pub(super) fn complete(self, mut response: Response) -> Response {
        response::warn(&mut response, &self.warnings);
        set_revision(response.headers_mut(), self.snapshot.revision);
        response::noted(response, self.note)
    }
}

impl PendingWrite {
    /// Commits if the client's precondition holds at the revision that changes.
    pub(super) async fn commit(self) -> Result<CommittedWrite, ApiError> {
        let (write, began, mut judgements) = (Arc::new(self), Instant::now(), 0);
        loop {
            let judged = write.judged().await?;
            judgements += 1;
            let (entering, settling) = (Arc::clone(&write), Arc::clone(&write));
            let enter = move || entering.enter(judged.as_ref().map(|(judged, _place)| judged));
            let settle = move |(entered, warnings, before, note): EnteredWrite| {
                let committed = settling.settle(entered);
                committed.map(|snapshot| (CommittedWrite { snapshot, warnings, note }, before))
            };
            let committed = write.app.writes.executor.commit(write.quick, enter, settle).await;
            match committed.ok_or_else(ApiError::internal)? {
                Ok((mut committed, before)) => {
                    let effects = effect_warnings(&write.key, before.as_deref(), &committed.snapshot).await;
                    committed.warnings.extend(effects);
                    return Ok(committed);
                }
                Err(Declined::Commit(error)) => return Err(error.into()),
                Err(Declined::Declined(WriteStop::Refused(error))) => return Err(error),
                Err(Declined::Declined(WriteStop::Overtaken)) => {}
            }
            if judgements >= LEAST_JUDGEMENTS && began.elapsed() >= LONGEST_JUDGING {
                let wait = number_of(RETRY_AFTER as usize, "second");
                let message = format!(
                    "other changes kept overtaking this one while invariants judged it; send the request again in {wait}"
                );
                return Err(ApiError::with_code(Code::Unavailable, message).retry_after(RETRY_AFTER));
            }
        }
    }

    /// Judges whether the change breaks an invariant, if invariants depend on it. What the caller may not change is not judged.
    /// None as well if the state refuses the change for another reason.
    async fn judged(self: &Arc<Self>) -> Result<Option<(JudgedOperations, WorkPlace)>, ApiError> {
        // The newest state is behind the lock of the queue, for which no request may wait here. If it differs in this, the commit
        // finds out, and the next try asks again.
        if !self.is_judged_on(&self.app.served.store.snapshot()) {
            return Ok(None);
        }
        let place = self.app.admissions.judgements.for_owner(&self.caller.owner)?;
        let write = Arc::clone(self);
        let judge = move |_| JudgedOperations::new(&write.app.served.store.tip(), &write.operations);
        let (judged, place) = place.run_held(judge).await?;
        Ok(judged.map(|judged| (judged, place)))
    }

    fn is_judged_on(&self, state: &Snapshot) -> bool {
        JudgedOperations::are_needed(state, &self.operations)
            && permission::allows_request(&self.caller, self.address, &self.operations, state).is_ok()
    }

    /// Puts the write into the queue of the store.
    fn enter(&self, judged: Option<&JudgedOperations>) -> EnteredWrite {
        let (app, caller, visibility) = (&self.app, &self.caller, &self.owned.visibility);
        let (mut warnings, mut before, mut note) = (Vec::new(), None, None);
        // Each try has its own time: no record may be older than those before it by as long as a change waits.
        let attempt = Attempt { note: self.owned.note(), ..Attempt::new(caller.author()) };
        let entered = app.served.store.enter(attempt, |current| -> Result<NextState, WriteStop> {
            let (operations, conflict) = key_owner::with_owner(self.operations.clone(), self.owner_role, current);
            permission::allows_request(caller, self.address, &operations, current)
                .map_err(|fault| caller.refused(fault))?;
            conflict.map_or(Ok(()), Err)?;
            note = SecurityNote::for_operations((&caller.key, &caller.owner), &operations);
            warnings = self.owned.check(caller, current, &operations).map_err(ApiError::new)?;
            before = current.get(&self.key).cloned();
            self.precondition.check(|| match self.slot {
                Some(slot) => render_module(&app.served.base_urls, visibility, current, &self.key, slot),
                None => current
                    .get(&self.key)
                    .map(|entry| render(&app.served.base_urls, visibility, current, entry))
                    .transpose(),
            })?;
            NextState::judged(current, operations, judged).ok_or(WriteStop::Overtaken)
        });
        warnings.extend(entered.iter().flat_map(|queued| doubts_in_header(queued.doubts())));
        (entered, warnings, before, note)
    }

    /// Waits until the write is durable. One that was overtaken is tried again, and counts as a commit only then.
    fn settle(
        &self,
        entered: Result<QueuedCommit<WriteStop>, Declined<WriteStop>>,
    ) -> Result<Arc<Snapshot>, Declined<WriteStop>> {
        let (store, entered) = (&self.app.served.store, entered?);
        let is_overtaken = matches!(entered.declined(), Some(WriteStop::Overtaken));
        if is_overtaken { store.settle_uncounted(entered) } else { store.settle(entered) }
    }
}

/// The warnings about invariants of which nobody can tell after a change whether they hold.
fn doubts_in_header(doubts: &[(Key, Fault)]) -> Vec<String> {
    let shown = doubts.iter().take(MOST_DOUBTS).map(|(_, fault)| fault.message.clone());
    let more = doubts.len().saturating_sub(MOST_DOUBTS);
    let rest = (more > 0).then(|| format!("undecided for {more} more requests, see GET /proofs"));
    shown.chain(rest).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;
    use crate::model::AnyResource;
    use crate::server::App;
    use crate::store::Query;

    fn create(key: &Key, spec: &Value) -> Operation {
        let spec: Arc<dyn AnyResource> = (key.kind.info().restore)(&spec.to_string()).unwrap();
        Operation::create(key.clone(), spec)
    }

    /// A request that creates an edge.
    fn write(app: &AppState) -> PendingWrite {
        let key = Key::new(Kind::HttpsEdge, Id::new("edghts_1"));
        PendingWrite {
            app: app.clone(),
            caller: Caller { key: Id::new("ak_1"), owner: Id::new("usr_a"), role: Role::Admin, scope: None },
            address: None,
            slot: None,
            operations: vec![create(&key, &json!({"hostports": ["shop.example.com:443"]}))],
            key,
            owner_role: None,
            owned: WriteCheck::new(app.clone(), &HeaderMap::new(), &SecretVisibility::Everything),
            precondition: Precondition::none(),
            quick: true,
        }
    }

    #[test]
    fn a_record_is_as_old_as_the_try_that_makes_it() {
        let app = App::in_memory().0;
        let write = write(&app);
        // Times have whole seconds.
        std::thread::sleep(Duration::from_millis(1100));
        let tried = clock::now();
        assert!(write.settle(write.enter(None).0).is_ok());
        let record = app.served.store.headers(&Query::All, u64::MAX, 1).unwrap().remove(0);
        assert!(record.at >= tried, "{} is before {tried}", record.at);
    }

    #[test]
    fn a_try_that_was_overtaken_is_no_commit() {
        const COMMITS: &str = "edgewright_store_commit_duration_seconds";
        let app = App::in_memory().0;
        let invariant = Key::new(Kind::Invariant, Id::new("inv_1"));
        let spec = json!({"description": "d", "scope": {"path_prefixes": ["/admin"]}, "requires_any": ["oidc"]});
        app.served.store.commit(Author::Local, vec![create(&invariant, &spec)]).unwrap();
        let (write, recorder) = (write(&app), PrometheusBuilder::new().build_recorder());
        let counted = |judged: Option<&JudgedOperations>| {
            let settled = ::metrics::with_local_recorder(&recorder, || write.settle(write.enter(judged).0));
            (settled.is_ok(), recorder.handle().render().contains(COMMITS))
        };
        assert_eq!(counted(None), (false, false), "nobody has judged it");
        let judged = JudgedOperations::new(&app.served.store.tip(), &write.operations).unwrap();
        assert_eq!(counted(Some(&judged)), (true, true));
    }
}
