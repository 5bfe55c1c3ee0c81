//! What several lints look at: certificates in chains, policies with their places, and the texts in policies.

pub(in crate::lint) mod certificate_chain;
pub(super) mod cidr_range;
pub(super) mod match_pattern;
pub(super) mod placed_policy;
