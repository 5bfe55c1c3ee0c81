//! map

pub mod api;
pub mod cli;
pub mod manifest;
pub mod model;
pub mod plan;
pub mod reconcile;
pub mod store;
