//! People who sign in through an OpenID Connect provider (D117).
//!
//! # The problem
//!
//! A token that a person keeps is passed on, outlives the person's job, and has a description in the history instead of a
//! name. The company already knows its people and their groups.
//!
//! # The idea
//!
//! The provider says who somebody is, and the configuration maps its claims to roles and sources ([`roles`]). The person is a
//! [`Caller`](super::caller::Caller) like any other, whose key is `person:` and a name, and whose owner is derived from the
//! issuer and the subject: permissions, limits, history and security log work as for a key. Nothing is written to the store.
//!
//! ```text
//! GET /ui/login/oidc            state, nonce and verifier in a sealed cookie   303 to the provider
//! GET /ui/login/oidc/callback   state of the cookie, code, verifier            the provider gives an ID token
//!                               signature, issuer, audience, times, nonce      a session with the matching claims
//! GET /ui/                      claims of the session, mappings of today       the role
//! ```
//!
//! A command line has no browser: it shows a code to enter at the provider ([`device`], RFC 8628), and gets a token that is a
//! sealed session ([`person_token`]).
//!
//! # What it never does
//!
//! The server does not need the provider to start, nor for a request of somebody who is signed in. What a token says counts only
//! after its signature, and no text of it gets into a log before that. A browser is only sent to the provider and to
//! pages of this server.

mod claims;
pub(crate) mod config;
pub(crate) mod connector;
pub(crate) mod device;
mod failure;
mod id_token;
mod jwk;
pub(crate) mod person;
pub(crate) mod person_token;
mod provider;
pub(crate) mod refused_people;
mod roles;
