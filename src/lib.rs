//! edgewright reconciles an edge gateway with manifests in Git. It validates the manifests, computes an exact plan, and
//! applies it to an embedded store as one atomic revision. A server provides a JSON management API on that store.
//!
//! The program `edgewright` is [`main()`] of this library. The library can also be embedded in other programs. Its API
//! has one function per verb, the types they take and return, and four groups: [`resources`], [`report`], [`storage`]
//! and [`server`].
//!
//! # Embedding
//!
//! [`load()`] reads manifests from a [`Tree`]: a [`Disk`], a Git commit ([`CommitTree`]) or memory ([`Sent`]). It
//! returns everything it could read, and a [`Diagnostic`] for each error.
//!
//! ```
//! use edgewright::{Disk, load};
//!
//! let folder = tempfile::tempdir()?;
//! let shop = "
//! apiVersion: edgewright/v1
//! kind: HttpsEdge
//! metadata: {name: shop}
//! spec: {hostports: ['shop.example.com:443']}
//! ";
//! std::fs::write(folder.path().join("shop.yaml"), shop)?;
//! std::fs::write(folder.path().join("torn.yaml"), "kind: [HttpsEdge")?;
//!
//! let loaded = load(&Disk::new([folder.path()]));
//! assert_eq!(loaded.files.len(), 2);
//! assert!(!loaded.diagnostics.is_empty());
//! let torn = |name: &str| name.ends_with("torn.yaml");
//! assert!(loaded.diagnostics.iter().all(|it| it.position().is_some_and(|(name, ..)| torn(name))));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`validate()`] checks manifests against every rule and lint, without a store.
//!
//! ```
//! use edgewright::{LintLevels, Sent, SentFile, validate};
//!
//! let text = "
//! apiVersion: edgewright/v1
//! kind: HttpsEdge
//! metadata: {name: shop}
//! spec:
//!   hostprots: ['shop.example.com:443']
//! ";
//! let tree = Sent::new(vec![SentFile::new("shop.yaml", text)], None);
//! let validated = validate(&tree, &LintLevels::default());
//! assert!(validated.has_errors());
//! let error = &validated.diagnostics[0];
//! assert_eq!(error.position(), Some(("shop.yaml", 6, 3)));
//! assert_eq!(error.message, "unknown field `hostprots`");
//! assert_eq!(error.help.as_deref(), Some("did you mean `hostports`?"));
//! ```
//!
//! [`plan()`] computes the operations that turn a [`Snapshot`] into what the manifests declare. It changes nothing.
//!
//! ```
//! use edgewright::{
//!     Disk, Options, Snapshot, plan,
//!     report::{Format, render},
//! };
//!
//! let tree = Disk::new(["examples/storefront"]);
//! let planned = plan(&Options::new(tree), &Snapshot::default());
//! assert!(!planned.has_errors());
//! let changes = planned.plan.as_ref().map(|plan| plan.summary());
//! assert!(changes.is_some_and(|changes| changes.create > 20 && changes.delete == 0));
//! let comment = render(Format::Markdown, &planned.report("plan"))?;
//! assert!(comment.contains("+ HttpsEdge storefront — POST /edges/https"));
//! # Ok::<(), edgewright::report::JsonError>(())
//! ```
//!
//! [`apply()`] commits a plan to a [`Store`] as one revision, if the store is still at the revision it was computed
//! from. Afterwards there is nothing left to do.
//!
//! ```
//! use edgewright::{Options, Sent, SentFile, Store, apply, plan};
//!
//! let text = "
//! apiVersion: edgewright/v1
//! kind: HttpsEdge
//! metadata: {name: shop}
//! spec: {hostports: ['shop.example.com:443']}
//! ";
//! let tree = Sent::new(vec![SentFile::new("shop.yaml", text)], None);
//! let options = Options { source: "shop".into(), ..Options::new(tree) };
//!
//! let store = Store::open("memory:")?;
//! let planned = plan(&options, &store.snapshot());
//! assert_eq!(apply(&store, &options, &planned)?, 1);
//! assert!(plan(&options, &store.snapshot()).plan.is_some_and(|plan| plan.is_empty()));
//! // The same plan again would be out of date.
//! assert!(apply(&store, &options, &planned).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`trace()`] shows which edge and route of a [`Snapshot`] handle a request, and which modules it passes.
//!
//! ```
//! use edgewright::{Options, Sent, SentFile, Store, TracedRequest, apply, plan, trace};
//!
//! let text = "
//! apiVersion: edgewright/v1
//! kind: HttpsEdge
//! metadata: {name: shop}
//! spec:
//!   hostports: ['shop.example.com:443']
//!   routes:
//!     - {name: cart, match_type: path_prefix, match: /cart, backend: {backend_id: bkd_1}}
//! ";
//! let tree = Sent::new(vec![SentFile::new("shop.yaml", text)], None);
//! let options = Options::new(tree);
//! let store = Store::open("memory:")?;
//! apply(&store, &options, &plan(&options, &store.snapshot()))?;
//!
//! let cart = trace(&store.snapshot(), &TracedRequest::new("GET", "https://shop.example.com/cart/1")?);
//! let route = cart.route().ok_or("no route")?;
//! assert_eq!(route.route.name.as_deref(), Some("cart"));
//! assert_eq!(cart.modules[0].module, "backend");
//! let home = trace(&store.snapshot(), &TracedRequest::new("GET", "https://shop.example.com/")?);
//! assert!(home.edge.is_some() && home.route().is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To serve the management API of a store, and to keep the store in sync with a folder, see [`server`].
//!
//! # Architecture
//!
//! ## Layers
//!
//! `cli → server → reconcile → {manifest, plan, store} → {filter, lint, tenancy} → routing → model → syntax →
//! {background, cache, files, http_client, lock, subprocess}`. A layer uses only the layers below it, and the modules of
//! one layer do not import each other. A test enforces this. All modules but [`server`] are private; `src/lib.rs` and
//! `src/facade.rs` are above all layers and re-export the API. `src/fuzzing.rs` is for tests, and public with the feature
//! `fuzzing`; `src/build.rs` is the build script, and `src/main.rs` calls [`main()`].
//!
//! | Module | Purpose | Never |
//! | --- | --- | --- |
//! | `model` | Resources, operations and the rules they must meet | does IO, reads the clock, uses randomness |
//! | `cache` | Caches within bounds, and of what can become invalid | knows what it keeps |
//! | `files` | Files that are complete or missing, the fail points of the disk, and gzip | knows what it writes |
//! | `http_client` | Requests to other servers: timeouts, authorities, and why one failed; the URLs of servers | knows what it sends |
//! | `lock` | Locks that a panic does not poison | knows what it protects |
//! | `background` | Threads for long work beside the requests of a server, and their priority | has an effect on what a run finds |
//! | `subprocess` | Running `git` and shell commands, which end with this process | knows what they are for |
//! | `syntax` | Notations of others: YAML and JSON, CEL, certificates and keys, XML, access logs, quoted text | knows resources |
//! | `filter` | The selection of resources in lists | sees a secret |
//! | `lint` | Legal configuration that is probably a mistake; `rules` has one file per lint, and `rules/shared` what several use | rejects what the API accepts |
//! | `tenancy` | What keeps sources apart: the table of all ways between them, and the decisions (D112) | depends on who asks |
//! | `routing` | Route selection, the effect of each module on a request, the classes of all requests, and those of logs | handles traffic |
//! | `manifest` | YAML and JSON to the desired state, with spans, from a [`Tree`]: the disk, a Git repository, a request | knows the store |
//! | `plan` | The difference as [operations](resources::Operation), and its output formats | does IO |
//! | `store` | Revisions, former states and history, over an [`Engine`](storage::Engine) that makes them durable | interprets changes |
//! | `reconcile` | A single run, a rollback, a transfer, destroying a source, and the loop of each followed source with its status, drift and suspension | prints |
//! | `server` | The management API over HTTP, its OpenAPI document, the dashboard, what tells others of changes, the gateway's configuration, and what servers of one database say to each other | changes state except by a commit |
//! | `cli` | One file per command, in folders by what people do with them; what several use is in `target`, `input` and `output`, or with the command that it is most about | has a rule that a server or an embedding program needs, too |
//!
//! ## Core types
//!
//! - [`Kind`](resources::Kind): a resource kind; kinds are in dependency order. One file each in `model::kind`.
//! - `Resource`: a kind's Spec (API body, manifest `spec`, stored record and schema in one type) and its View (the
//!   response form). [`AnyResource`](resources::AnyResource) is a Spec of any kind.
//! - `Module` in a [`Slot`](resources::Slot): a traffic module, in a typed optional field of its host. Router,
//!   OpenAPI, schemas, diff, store, lints and traces visit the slots, so a new module is one file, and one line each to
//!   declare, host and export it.
//! - [`Snapshot`]: all resources at one revision, immutable and cheap to clone. A Spec that was read from the store is
//!   decoded on first use. [`Snapshot::apply`] is the only place where an operation takes effect.
//! - [`Entry`](resources::Entry): a resource in a Snapshot: its Spec, its creation, its cached responses, and the
//!   [`Claim`](resources::Claim) of the source that owns it, with what that source has promised.
//! - [`Desired`](resources::Desired): a resource that manifests declare, with all names resolved to IDs. The planner
//!   compares it with the Entry.
//! - [`Operation`](resources::Operation): create, patch, put module, delete module, delete, claim. A REST handler
//!   makes one or two, the planner (`plan::diff`) and a rollback (`plan::revert`) many. All go through the queue of the
//!   store (`store::group_commit`; [`Store::commit_with`] is its public form), which applies them to the newest Snapshot,
//!   or takes the Snapshot on which the same operations were tried.
//! - [`Batch`](storage::Batch): a commit as the log has it. [`Tip`](storage::Tip): the end of a log, which the next Batch
//!   continues.
//! - [`Plan`]: operations and the revision they were computed from. Its [`RedactedPlan`](report::RedactedPlan) is the
//!   plan without secrets; every output format and the server's response are made from it, so what is shown is what
//!   runs.
//! - [`Fault`](resources::Fault): an error at a field, with a [`Code`] from the registry. With a position in a file it
//!   is a [`Diagnostic`].
//! - [`Secret`](resources::Secret): masked by every serializer except `model::json`, which reveals it to a caller that
//!   asks for it with [`Secrets`](resources::Secrets).
//! - [`Lint`](report::Lint): a check for a probable mistake in legal configuration; one file each, and one table.
//! - [`Invariant`](resources::Invariant): what must hold for all requests of a scope. `routing::invariant` proves it, and
//!   `store::speculative` refuses what breaks it. `GET /proofs`, the metrics and the status of sources share the proofs of
//!   a revision (`server::telemetry::proofs`).
//! - `FollowedSource`: the settings of a source that a server follows. Its [`SourceHandle`](server::SourceHandle) has the
//!   status of its loop and controls it.
//!
//! In addition, `routing` implements `edgewright trace` and `edgewright replay`, `manifest::export` turns a Snapshot back into
//! manifests, and `manifest::format` formats their text.
//!
//! ## Words
//!
//! - *promised*: a resource whose Claim lets another source take it over. It stays although its owner does not declare it
//!   (D104).
//! - *kept*: a resource that a plan does not delete although its source no longer declares it: other sources use it
//!   (`plan::kept_resources`, D35), or a transfer is not complete (D104).
//! - *held*: manifests that a sync does not apply because a rollback undid them, until they change (D78), and the part of a
//!   plan that would revert drift, with the policies `warn` and `off` (D85).
//! - *surrounding*: manifests beside those of a source (`--with`), whose names and module sets it uses without owning
//!   them (D107).
//!
//! ## Invariants
//!
//! 1. The same input gives the same plan everywhere: ids of resources in manifests are derived, not random.
//! 2. Only a commit changes state, and only `store` knows the storage engine.
//! 3. A reader never waits for a writer and never sees a partial commit: requests read a Snapshot; only history is
//!    read from disk.
//! 4. Every acknowledged commit is on disk, and the disk only ever has whole revisions.
//! 5. A reference to a resource of this service resolves in every revision that was ever visible.
//! 6. A failed or empty read of the manifests is an error, never "delete everything".
//! 7. One invalid file does not hide the errors in others: loading returns everything it could read, and every
//!    diagnostic.
//! 8. A secret never reaches a log, an error, a plan or debug output. Its type guarantees this, not the caller.
//! 9. Planning again after an apply gives an empty plan, for every kind.
//! 10. Only `cli` and `server` print or send responses; all other layers return data.
//!
//! ## Main flows
//!
//! The stages of a run are functions from one value to the next, in `src/reconcile/run/stages.rs`: load, resolve, judge,
//! isolate, diff, try, test.
//!
//! - **`reconcile --dry-run manifests/`**: files → documents → typed Specs and diagnostics → names to ids
//!   (`manifest::resolve`) → lints → `plan::diff` against the Snapshot → the plan is tried on the Snapshot, where it must
//!   break no invariant (`store::speculative`, D120) → what it opens is judged (`plan::exposure`, D113) → the route tests
//!   of the source run on the result (`routing::route_test`, D118) → `plan::format` → exit
//!   code. Without `--dry-run` the plan is committed as one revision with one history record. With `--server` the files
//!   go to `server::operations::reconciliation`, which does the same on its own store, and also answers reviews of a
//!   folder among what it has (`validate`, `diff`, `trace`, D111). Documents in plain YAML are read directly, and all
//!   others by serde_yaml (`syntax::yaml`, D76).
//! - **`PUT /edges/https/{edge_id}/routes/{id}/saml`**: what every request passes (`server::http::service`) →
//!   `server::http::endpoint_paths` → the handler of the action → typed body (`model::decode`) → one operation → if
//!   invariants depend on it, their judgement, in a place of its own (`server::resources::pending_write`, D120) →
//!   the queue of the store, which one thread fills for all small writes while another one waits for the disk
//!   (`server::resources::commit_executor`) → the log, with one sync for all that wait (`store::group_commit`) → View →
//!   bytes. The bytes of a whole resource are cached with its entry until it or a child changes.
//! - **the log has grown**: a checkpoint begins its next segment (`store::checkpoint`) → the state at the start of the
//!   segment in a sled database of its own, while commits go on → the head names it (`store::database`, D58).
//! - **the disk is full**: the engine cuts off what it wrote in part (`store::log::appender`) → all commits in the queue
//!   fail, and the newest state is the last durable one again (`store::group_commit`); readers notice nothing → `/readyz`
//!   tries a write until one succeeds (`server::operations::ready`), and commits succeed again without a restart. After a
//!   failed sync, nobody knows what the disk has, so all commits fail until a restart (D58).
//! - **another server writes to the same database**: this one takes in its commits (`store::replication`), and serves the next
//!   round as the writer when the other one is gone (`cli::serve::role`, D115). Meanwhile it forwards changes to that one, and
//!   requests that need a revision wait for it (`server::replicas`). One that starts while the database is away serves from
//!   a copy in a folder until it answers (`store::local_copy`).
//! - **a file or a ref changes**: the event only triggers a sync → debounce, and files still being written (D92) → all
//!   files are read, and those with another text are parsed (`manifest::load_again`) → the first flow for what has
//!   changed (`reconcile::run::memo`, D74) → commit. Invalid manifests are reported and change
//!   nothing (`reconcile::sync_loop`). A remote repository is fetched into a mirror before the sync
//!   (`reconcile::sources::fetch_schedule`, D88).
//! - **somebody changes a declared resource**: the next sync plans to change it back. The history tells what others
//!   wrote (`store::history::external_writes`) from what the manifests changed, and the policy of the source decides
//!   (`reconcile::sync_loop::plan_drift`, D85), except about what is put back in any case, such as a required module
//!   (`reconcile::sync_loop::put_back`). The status shows it before that sync (`reconcile::sources::recent_drift`).
//! - **a notification goes out**: a commit does nothing for it. Each target has a thread that reads the history after its
//!   cursor (`server::notify::delivery`), and the events of sources and certificates from a bounded file
//!   (`server::notify::transitions`) → a message for what its filter selects → a signed request or a line of a file, again
//!   after a failure (`server::notify::sink`) → the cursor is written, so that a crash repeats one and loses none (D81).
//! - **the history is read**: lists read the headers of commits, and the history of a resource its entries where the
//!   index says that they are (`store::history::{records, resource_history}`); what people see is made from the entries
//!   (`store::history::change_description`, D58).
//! - **a revision is read or brought back**: the log has the former value of each change, so that the current Snapshot
//!   is walked back (`store::history::rewind`, D79); a rollback is the plan from the current state to that one
//!   (`plan::revert`, D78).
//! - **a request changes something**: `server::auth::authentication` finds the caller → `server::auth::permission`
//!   decides with its role and scope (D101), and `tenancy::rights` what of others that includes (D112) → inside the
//!   commit, `server::resources::managed_resources` asks the sources that own what changes (D103).
//! - **an operation that no kind has** (`GET /history`, `POST /trace`): its declaration is in its file, and the table
//!   `server::operations` lists it. Route, checks before the handler (`server::operations::checks`) and OpenAPI
//!   follow.
//! - **a source meets another one**: what a source can change for others is a table (`tenancy`, D112): edges consent
//!   to routes and certificates, and require modules (D103), whose secrets stay those of the edge
//!   (`model::required_secrets`); the rights of a key or a followed source are judged on the operations of its plan,
//!   request, rollback or transfer (`tenancy::rights`); resources change hands
//!   (`manifest::resolve::transfer`, `plan::transfer`, D104); names and module sets of surrounding manifests resolve
//!   and are not owned (`manifest::resolve::surrounding`, D107).
//! - **the same dry run again**: files → digests → the answer of the last run (`reconcile::run::plan_cache`, D73).

mod background;
mod cache;
mod cli;
mod facade;
mod files;
mod filter;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod http_client;
mod lint;
mod lock;
mod manifest;
mod model;
mod plan;
mod reconcile;
mod routing;
pub mod server;
mod store;
mod subprocess;
mod syntax;
mod tenancy;

// The program.
pub use cli::main;

// Manifests and where they come from.
pub use manifest::tree::{
    CommitTree, Disk, FileStamp, GitCommitDetails, NotedFile, Recorder, Sent, SentFile, SentValue, Tree, TreeFiles,
};
pub use manifest::{Loaded, ManifestFile, load};

// Validation, planning and application.
pub use model::diagnostics::{code::Code, diagnostic::Diagnostic};
pub use plan::{Plan, deletion_budget::DeletionBudget};
pub use reconcile::{ApplyError, LintLevels, Options, PlanResult, apply, plan, run::cancel::Cancel, validate};
pub use tenancy::{Adoption, SourceScope};

// State.
pub use model::snapshot::Snapshot;
pub use store::Store;

// Traces.
pub use routing::{Trace, TracedRequest, trace};

// Everything else, by subject.
pub use facade::{report, resources, storage};
