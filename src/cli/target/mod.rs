//! The targets of commands: a local store or a server. `proposal.rs` has the `Target` of `reconcile`, which `store.rs` and
//! `server.rs` implement; `client.rs` is the client of a server, and `server_args.rs` chooses the server.

mod client;
mod credentials;
mod history;
mod keys;
mod pages;
mod proposal;
mod server;
mod server_args;
mod store;
mod store_or_server;
mod upload;

pub(super) use client::{
    ApiClient, RequestEffect, SendError, foreign_response, no_response, parse_report, parse_response, parse_server_url,
};
pub(super) use credentials::{Credentials, TOKEN};
pub(super) use history::{each_record, get_entry, to_change, to_record};
pub(super) use keys::{ListedKey, create_key, delete_key, list_keys, set_owner_role};
pub(super) use proposal::{PlanFile, Proposal, Target};
pub(super) use server::ServerTarget;
pub(super) use server_args::ServerArgs;
pub(super) use store::StoreTarget;
pub(super) use store_or_server::StoreOrServer;
