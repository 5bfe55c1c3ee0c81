//! map

pub mod model;
