//! Plans on pages: `preview.rs` shows the report of a plan, and `kept_plan.rs` is the page of one whose address was sent around.

pub(super) mod kept_plan;
pub(super) mod preview;
