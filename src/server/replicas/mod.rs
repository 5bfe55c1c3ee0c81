//! Several servers on one database (D115): what makes them look like one to a client.
//!
//! # The problem
//!
//! One server writes, and the others follow it. A load balancer does not know which is which, and a client that writes through
//! one server and reads from another one may not find what it has written.
//!
//! # The idea
//!
//! A server that follows *forwards* what only the writer can do ([`forwarder`]). The writer authenticates the request itself, with
//! the token of the client. What a connection says about the client, its address and its certificate, comes in a header with a MAC
//! that only servers of the store can make ([`forwarded_client`]).
//!
//! A response to a change says the revision of the store ([`read_your_writes`]). The server that has forwarded it waits until it
//! has that revision, so the client reads its change there. For any other server, a request can name the revision that it needs.
//!
//! ```text
//! client → B (follows)     PATCH /edges/https/edghts_1
//!          B → A (writes)  the same, Edgewright-Forwarded: time, digest of the body, address, certificate, MAC
//!          B ← A           200, Edgewright-Revision: 43
//!          B               has taken in revision 43
//! client ← B               200, Edgewright-Revision: 43
//! ```
//!
//! # What it never does
//!
//! A request is forwarded once, so two servers that each believe the other one to write do not send it around. One that may have
//! been carried out is never sent again: the client is told that nobody knows. Reads never wait for the writer.

pub(crate) mod forwarded_client;
pub(crate) mod forwarder;
pub(crate) mod read_your_writes;
mod signed_body;
#[cfg(test)]
mod tests;
