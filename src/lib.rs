//! # edgewright: the map
//!
//! edgewright keeps an edge traffic gateway true to manifests in git. Manifests are validated, turned into an exact
//! plan, and applied to an embedded store as one atomic revision; a server answers a JSON management API from that
//! store. One binary: `src/main.rs` runs [`cli::main`].
//!
//! ## Layers
//!
//! `cli → api → reconcile → {manifest, plan, store} → {lint, routing} → model → {x509, xml} → text`. A layer uses only those
//! below it, and the modules of one layer do not import each other; a test holds the tree to this.
//!
//! | module | is | and never |
//! | --- | --- | --- |
//! | [`model`] | what resources are, what may change, what is wrong | does IO, asks the time, rolls dice |
//! | [`text`] | how text from elsewhere is quoted in messages | knows what the text is about |
//! | [`x509`] | PEM, certificates and keys: what they say, and whether they fit | knows resources |
//! | [`xml`] | whether a text is SAML metadata, within bounds | builds a tree, recurses |
//! | [`lint`] | legal configuration that is probably a mistake, one file a lint | refuses what the API accepts |
//! | [`routing`] | which route takes a request, and what its modules do with it | handles traffic |
//! | [`manifest`] | YAML and JSON to the desired state, with spans, from a [`Tree`](manifest::tree::Tree): the disk, a commit, a request | knows the store |
//! | [`plan`] | the difference as [operations](model::operation::Operation), and what is told of it | does IO |
//! | [`store`] | revisions and history, over an [`Engine`](store::engine::Engine) that makes them durable | decides what a change means |
//! | [`reconcile`] | one run, and the loop that follows a folder | prints |
//! | [`api`] | the management API over HTTP, and its OpenAPI document | changes anything but by a commit |
//! | [`cli`] | one file a command | holds logic that another command needs |
//!
//! ## The types that carry the design
//!
//! - [`Kind`](model::Kind): a resource kind; its order is the order of dependency. One file each in [`model::kind`].
//! - [`Resource`](model::resource::Resource): a kind's Spec, which is API body, manifest `spec`, stored record and
//!   schema in one, and its View, the response form.
//! - [`Module`](model::module::Module) in a [`Slot`](model::module::Slot): a traffic module, in a typed optional field
//!   of its host. Router, OpenAPI, schemas, diff, store, lints and traces visit the slots, so a new module is one file
//!   and one line.
//! - [`Snapshot`](model::snapshot::Snapshot): all resources at one revision, immutable and cheap to clone.
//!   [`Snapshot::apply`](model::snapshot::Snapshot::apply) is the one place where an operation takes effect.
//! - [`Operation`](model::operation::Operation): create, patch, put module, delete module, delete, claim. A REST
//!   handler makes one and the [planner](plan::diff) many; both go through [`Store::commit`](store::Store::commit).
//! - [`Plan`](plan::Plan): operations with the revision they were computed from. What is shown is what runs: its
//!   [`Outline`](plan::outline::Outline) is the plan without secrets, from which every format is made and which a server
//!   sends.
//! - [`Fault`](model::fault::Fault): what is wrong at which field, with a [`Code`](model::code::Code) of the one
//!   registry; with a place in a file it is a [`Diagnostic`](model::diagnostic::Diagnostic).
//! - [`Secret`](model::secret::Secret): masked by type wherever it is written, revealed in one named place.
//!
//! - [`Lint`](lint::Lint): what is legal and still a mistake; one file each, and one table.
//!
//! Beside these: [`routing`] answers `edgewright trace`, [`manifest::export`] turns a Snapshot back into
//! manifests, and [`manifest::format`] normalises their text.
//!
//! ## Invariants
//!
//! 1. The same input gives the same plan, anywhere: ids of what manifests declare are derived, not drawn.
//! 2. Nothing but a commit changes state, and nothing but [`store`] knows the engine.
//! 3. A reader never waits for a writer and never sees half of a commit: requests read a Snapshot, never the disk.
//! 4. What was acknowledged is on disk, and what is on disk is a whole revision.
//! 5. A reference to a resource of this service resolves in every revision that was ever visible.
//! 6. A failed or empty read of the manifests is an error, never "delete everything".
//! 7. One bad file does not hide the faults of the others: loading returns all it could make, and every diagnostic.
//!
//! ## Three flows
//!
//! - **`reconcile --dry-run manifests/`**: files → [documents](manifest) → typed Specs and diagnostics → names to ids
//!   ([`manifest::resolve`]) → [lints](lint) → [`plan::diff`] against the Snapshot → the plan is tried on the
//!   Snapshot → [`plan::render`] or a [format](plan::format) → exit code. Without `--dry-run` the plan is committed as
//!   one revision with one history record.
//!   With `--server` the files go to [`api::reconciliation`], which does the same on its own store.
//! - **`PUT /edges/https/{edge_id}/routes/{id}/saml`**: [`api::endpoint`] → the one handler of its action → typed body
//!   ([`model::decode`]) → one operation → commit → View → bytes. Those of a whole resource stay with its entry until it
//!   or a child changes.
//! - **a file changes**: the event only means "look again" → debounce → the first flow → commit. What is invalid is
//!   reported and changes nothing ([`reconcile::watch`]).

pub mod api;
pub mod cli;
pub mod lint;
pub mod manifest;
pub mod model;
pub mod plan;
pub mod reconcile;
pub mod routing;
pub mod store;
pub mod text;
pub mod x509;
pub mod xml;
