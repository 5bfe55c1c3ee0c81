//! What tests are made with: the program in a folder, the API in this process, requests over the wire, a disk whose power
//! can go, an engine that fails, a server of PostgreSQL, a provider of OpenID Connect, a browser and its pictures, and the
//! manifests, repositories, sources and users that many tests begin with.

pub(crate) mod chromium;
pub(crate) mod disk;
pub(crate) mod engine;
pub(crate) mod git;
pub(crate) mod http;
pub(crate) mod identity_provider;
pub(crate) mod manifests;
pub(crate) mod picture;
pub(crate) mod postgres;
pub(crate) mod program;
pub(crate) mod server;
pub(crate) mod sources;
pub(crate) mod users;
