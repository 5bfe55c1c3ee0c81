//! Output. `report.rs` has the options of a report: its format and destination. Everything on stdout goes through `stdout.rs`;
//! `diagnostics.rs` and `progress.rs` write to stderr, and `generated.rs` has files that a repository keeps.

pub(crate) mod age;
pub(crate) mod destination;
pub(crate) mod diagnostics;
mod excerpt;
pub(crate) mod generated;
pub(crate) mod list;
mod progress;
mod report;
mod stdout;
pub(crate) mod table;

pub(super) use diagnostics::say;
pub(super) use progress::during;
pub(super) use report::Output;
pub(super) use stdout::{
    append, check_not_discarded, flush, is_on_terminal, is_readable_by_others, json_line, print, print_all,
    print_coloured, redraw, unless_closed,
};
