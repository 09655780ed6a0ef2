//! The built-in language model among several sessions: everybody is answered.

use serde_json::json;

use crate::client::Client;
use crate::server::Server;

/// A profile with eight slots of the language model.
const EIGHT_SLOTS: [&str; 2] = ["--profile", "xeon-avx512-2c-cpu-debian12"];

#[tokio::test]
async fn nine_sessions_share_eight_slots() {
    let server = Server::real_with(9, &EIGHT_SLOTS).await;
    let mut clients = Vec::new();
    for _ in 0..9 {
        let mut client = Client::open(server.addr()).await;
        client.update(json!({ "output_modalities": ["text"] })).await;
        clients.push(client);
    }
    for client in &mut clients {
        client.ask("Hello, who are you?").await;
    }
    for (session, client) in clients.iter_mut().enumerate() {
        let answer = client.answer().await;
        assert_eq!(answer.status, "completed", "session {session}: {}", answer.details);
    }
}
