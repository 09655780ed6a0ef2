//! The edge: the network boundaries of the server, sorted by the direction of the calls. In the server's process, only
//! the edge and the composition root import tokio.
//!
//! | folder | holds |
//! |---|---|
//! | [`inbound`] | service to clients: listener, connections, the endpoints beside the Realtime one |
//! | [`outbound`] | calls of model servers: the language model, recognition and synthesis elsewhere |
//! | [`tasks`] | tasks of a unit, one for each stage that a server does; each owns the unit's port of that stage |

pub mod dispatcher;
pub mod inbound;
pub mod outbound;
pub mod tasks;
