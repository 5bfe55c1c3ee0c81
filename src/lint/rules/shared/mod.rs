//! What several lints look at: certificates in chains, policies with their places, the texts in policies, and blank texts.

pub(super) mod blank_text;
pub(in crate::lint) mod certificate_chain;
pub(super) mod cidr_range;
pub(super) mod match_pattern;
pub(super) mod placed_policy;
