//! map

pub mod manifest;
pub mod model;
pub mod store;
