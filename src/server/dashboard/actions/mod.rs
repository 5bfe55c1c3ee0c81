//! What people may change from a page. Each [action] has a page that shows what it will do, and a form that does it as a request of
//! the API does.

pub(super) mod action;
pub(super) mod revoke_key;
pub(super) mod rollback;
pub(super) mod source_actions;
