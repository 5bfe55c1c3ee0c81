//! What a row is, what it is made of, and how it is held against a server.

pub(super) mod row;
pub(super) mod run;
pub(super) mod samples;
