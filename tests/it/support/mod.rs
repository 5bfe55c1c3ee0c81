//! What tests are made with: the program in a folder, the API in this process, and a disk whose power can go.

pub(crate) mod disk;
pub(crate) mod program;
pub(crate) mod server;
