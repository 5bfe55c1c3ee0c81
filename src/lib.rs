//! # edgewright architecture
//!
//! edgewright reconciles an edge gateway with manifests in Git. It validates the manifests, computes an exact plan, and
//! applies it to an embedded store as one atomic revision. A server provides a JSON management API on that store. There
//! is one binary: `src/main.rs` runs [`cli::main`].
//!
//! ## Layers
//!
//! `cli → api → reconcile → {manifest, plan, store} → {lint, routing} → model → {x509, xml} → text`. A layer uses only
//! the layers below it, and the modules of one layer do not import each other. A test enforces this.
//!
//! | Module | Purpose | Never |
//! | --- | --- | --- |
//! | [`model`] | Resources, operations and the rules they must meet | does IO, reads the clock, uses randomness |
//! | [`text`] | Quoting of external text in messages | knows what the text is about |
//! | [`x509`] | PEM, certificates and keys: parsing, and matching keys to certificates | knows resources |
//! | [`xml`] | A streaming check for SAML metadata, within bounds | builds a tree, recurses |
//! | [`lint`] | Legal configuration that is probably a mistake, one file per lint | rejects what the API accepts |
//! | [`routing`] | Route selection, and the effect of each module on a request | handles traffic |
//! | [`manifest`] | YAML and JSON to the desired state, with spans, from a [`Tree`](manifest::tree::Tree): the disk, a commit, a request | knows the store |
//! | [`plan`] | The difference as [operations](model::operation::Operation), and its output formats | does IO |
//! | [`store`] | Revisions and history, over an [`Engine`](store::engine::Engine) that makes them durable | interprets changes |
//! | [`reconcile`] | A single run, and the loop that follows a folder | prints |
//! | [`api`] | The management API over HTTP, and its OpenAPI document | changes state except by a commit |
//! | [`cli`] | One file per command | has logic that another command needs |
//!
//! ## Core types
//!
//! - [`Kind`](model::Kind): a resource kind; kinds are in dependency order. One file each in [`model::kind`].
//! - [`Resource`](model::resource::Resource): a kind's Spec (API body, manifest `spec`, stored record and schema in one
//!   type) and its View (the response form).
//! - [`Module`](model::module::Module) in a [`Slot`](model::module::Slot): a traffic module, in a typed optional field
//!   of its host. Router, OpenAPI, schemas, diff, store, lints and traces visit the slots, so a new module is one file
//!   and one line.
//! - [`Snapshot`](model::snapshot::Snapshot): all resources at one revision, immutable and cheap to clone.
//!   [`Snapshot::apply`](model::snapshot::Snapshot::apply) is the only place where an operation takes effect.
//! - [`Operation`](model::operation::Operation): create, patch, put module, delete module, delete, claim. A REST
//!   handler makes one and the [planner](plan::diff) many; both go through [`Store::commit`](store::Store::commit).
//! - [`Plan`](plan::Plan): operations and the revision they were computed from. Its
//!   [`Outline`](plan::outline::Outline) is the plan without secrets; every output format and the server's response are
//!   made from it, so what is shown is what runs.
//! - [`Fault`](model::fault::Fault): an error at a field, with a [`Code`](model::code::Code) from the registry. With a
//!   position in a file it is a [`Diagnostic`](model::diagnostic::Diagnostic).
//! - [`Secret`](model::secret::Secret): masked by every serializer. Only [`model::json`] can reveal it, for a caller that
//!   asks for it with [`Secrets`](model::secret::Secrets).
//! - [`Lint`](lint::Lint): a check for a probable mistake in legal configuration; one file each, and one table.
//!
//! In addition, [`routing`] implements `edgewright trace`, [`manifest::export`] turns a Snapshot back into manifests,
//! and [`manifest::format`] formats their text.
//!
//! ## Invariants
//!
//! 1. The same input gives the same plan everywhere: ids of resources in manifests are derived, not random.
//! 2. Only a commit changes state, and only [`store`] knows the storage engine.
//! 3. A reader never waits for a writer and never sees a partial commit: requests read a Snapshot; only history is read
//!    from disk.
//! 4. Every acknowledged commit is on disk, and the disk only ever has whole revisions.
//! 5. A reference to a resource of this service resolves in every revision that was ever visible.
//! 6. A failed or empty read of the manifests is an error, never "delete everything".
//! 7. One invalid file does not hide the errors in others: loading returns everything it could read, and every
//!    diagnostic.
//!
//! ## Main flows
//!
//! The stages of a run are values in `src/reconcile/stages.rs`: load, resolve, judge, isolate, diff, try.
//!
//! - **`reconcile --dry-run manifests/`**: files → [documents](manifest) → typed Specs and diagnostics → names to ids
//!   ([`manifest::resolve`]) → [lints](lint) → [`plan::diff`] against the Snapshot → the plan is tried on the
//!   Snapshot → [`plan::render`] or a [format](plan::format) → exit code. Without `--dry-run` the plan is committed as
//!   one revision with one history record. With `--server` the files go to [`api::reconciliation`], which does the same
//!   on its own store.
//! - **`PUT /edges/https/{edge_id}/routes/{id}/saml`**: [`api::endpoint`] → the handler of the action → typed body
//!   ([`model::decode`]) → one operation → commit → View → bytes. The bytes of a whole resource are cached with its
//!   entry until it or a child changes.
//! - **a file changes**: the event only triggers a rescan → debounce → the first flow → commit. Invalid manifests are
//!   reported and change nothing ([`reconcile::watch`]).

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
