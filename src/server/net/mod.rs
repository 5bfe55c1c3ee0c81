//! Sockets: listening, TLS, the limits of connections, and how a server lets go of its clients when it stops (D97).
//!
//! # The problem
//!
//! A connection costs its client a packet, and the server a file descriptor, a task and buffers. Whoever reaches the port can
//! open more of them than there are descriptors, and then say nothing, send a head byte by byte, or never read a response.
//! Then the operators of all gateways cannot connect, and neither can a process that has to open a file of the store.
//!
//! # The idea
//!
//! A connection is worth what it does. There are as many as the descriptors allow, and when all places are taken, a new
//! client gets the place of the one that does least, instead of being refused: most clients are honest, and ask right away.
//! How long each step may take is limited apart from that, so idle servers get rid of dead clients, too ([`connections`]).
//!
//! What a connection carries is not interpreted here. TLS is a layer below HTTP whose files may change while the
//! server runs ([`tls`]); [`listener`] has the socket, the signals and the order in which a server ends; [`drain`]
//! takes the rest of a refused body, so that its client sees the answer; and [`peer`] says to which addresses secrets
//! may be sent. Requests begin in [`http`](super::http), and their limits are in [`limits`](super::limits).
//!
//! # The end of a server
//!
//! 1. SIGTERM: the socket is closed, so that new clients are turned away, or wait for the next process if a service manager
//!    has the socket open, too.
//! 2. Streams of changes end. Connections without a request close, and the others after their response.
//! 3. After ten seconds, whatever is left is abandoned. A commit that is on its way is complete, or does not happen.
//!
//! # What it never does
//!
//! The server never trusts what a request says about its connection: the address is that of the socket, and only
//! [`proxy`](super::http::proxy) reads headers. Every wait for a client has a limit.

pub(crate) mod connections;
pub(crate) mod drain;
pub(crate) mod listener;
pub(crate) mod peer;
pub(crate) mod tls;
