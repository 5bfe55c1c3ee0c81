//! Limits that keep one client from starving the others: places for expensive work, rates, sizes, and a growing delay
//! after failed authentication (D52, D98).
//!
//! # The problem
//!
//! A client can be broken, greedy or hostile, and looks like any other. A limit of everything together can be used up by one
//! client, and is then a weapon against the others. A limit for each client needs to know who that is, and a token is known
//! only after a request was taken.
//!
//! # The idea
//!
//! A limit belongs to the first moment at which somebody can be blamed, and what is over it is taken from whoever has most. A
//! request meets these, in order:
//!
//! | When | Limit | Counts for | Over it |
//! | --- | --- | --- | --- |
//! | It arrives | requests in flight (`in_flight`) | nobody yet | 503, before anything is read |
//! | Its token is wrong | failures (`authentication_failures`) | the address | waits, then 429 |
//! | Its token is right | rate (`rate_limit`) | the API key | 429 |
//! | | requests in flight, again | the owner | 429, if others need the places |
//! | It is a change | the share of the history (`store::history_quota`) | the owner | 429 |
//! | Its body comes | bodies (`bodies`) | the owner, or the address | the slowest body of the largest sender ends |
//! | Its work begins | [`slots`] | the owner | waits for its turn, or 429; 503 if there are no more |
//!
//! Where work is shared, an owner counts and not a key: keys are free. Whoever waits takes turns by owner, so a thousand
//! requests of one owner delay another by one.
//!
//! A place is given back when it is dropped. The task of the request holds it ([`guards`]), or the thread that works
//! for the request ([`blocking_task`]), which a client that disconnects cancels.
//!
//! # What it never does
//!
//! No limit delays or refuses a valid token because of what others at its address do. A refused request has read nothing from
//! the store and changed nothing, and says whose limit it was and when to try again. `/healthz`, `/readyz` and `/metrics` are
//! always answered: an orchestrator would restart a server that is only busy.

mod authentication_failures;
pub(crate) mod blocking_task;
mod bodies;
pub(crate) mod guards;
mod in_flight;
mod rate_limit;
pub(crate) mod slots;
