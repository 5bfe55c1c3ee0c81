//! The targets of commands: a local store or a server.
//!
//! A command has one implementation for both, and its output does not depend on which it is. It takes the options of
//! [`StoreOrServer`], and asks the other files here for what it needs: the history, keys, or pages of a list.
//! `reconcile` goes in two steps, because what is applied must be what was shown: a [`Target`] proposes a plan, and
//! applies that proposal. [`StoreTarget`] plans in this process, and holds the store's lock in between.
//! [`ServerTarget`] sends the files, and with the apply the outcome that was shown: a server that would get another one
//! refuses.
//!
//! `client` is the only file that sends requests, and decides whether one may be repeated; `api_response` says whether a change
//! was made, `error_response` what a refused one means for the command, and `credentials` and `server_args` say to whom and as whom.

mod api_response;
mod client;
mod credentials;
mod error_response;
mod history;
mod keys;
mod pages;
mod proposal;
mod server;
mod server_args;
mod sources;
mod store;
mod store_or_server;
mod upload;

pub(super) use api_response::RequestEffect;
pub(super) use client::{ApiClient, parse_server_url};
pub(super) use credentials::{Credentials, TOKEN};
pub(super) use error_response::foreign_response;
pub(super) use history::{before_rollback, each_record, get_entry, to_change, to_record};
pub(super) use keys::{ListedKey, create_key, delete_key, list_keys, set_owner_role};
pub(super) use proposal::{AppliedPlan, PlanFile, Proposal, Target};
pub(super) use server::{ServerTarget, to_report};
pub(super) use server_args::ServerArgs;
pub(super) use sources::{owns_nothing, source_action, sources_of_server, sources_of_store};
pub(super) use store::StoreTarget;
pub(super) use store_or_server::StoreOrServer;
