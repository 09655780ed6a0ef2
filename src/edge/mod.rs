//! The edge: every network boundary of the server, sorted by who calls whom. Of the server's process, only the edge and the
//! composition root import tokio.
//!
//! | folder | holds |
//! |---|---|
//! | [`inbound`] | service to clients: listener, connections, the endpoints beside the Realtime one |
//! | [`outbound`] | calls of model servers: the language model, recognition and synthesis elsewhere |
//! | [`tasks`] | one task per unit and stage that a server does; each owns the unit's port |

pub mod dispatcher;
pub mod inbound;
pub mod outbound;
pub mod tasks;
