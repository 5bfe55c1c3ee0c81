//! What keeps one client from taking the server from the others: places for expensive work, rates, sizes, and a growing
//! delay after failed authentication (D52, D98).

mod bodies;
mod failures;
pub(crate) mod guards;
mod in_flight;
mod rates;
pub(crate) mod slots;
pub(crate) mod work;
