//! Who asks, and what they may do.
//!
//! A request has a token or a client certificate ([`authentication`], [`client_certificates`]); the role of its owner and
//! the scope of its key decide which operations it may carry out ([`permission`], D23, D101).

pub(crate) mod authentication;
pub(crate) mod caller;
pub(crate) mod client_certificates;
pub(crate) mod permission;
