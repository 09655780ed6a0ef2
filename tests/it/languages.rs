//! The language that the user speaks: what the recogniser is told of it and what it tells, and who acts on that
//! (RC-037, RC-067).

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::llm::{Script, ScriptedLlm};
use crate::server::Server;
use crate::signal::{level, silence, utterance};
use crate::speech_server::{Hear, ScriptedSpeech, Speak, Then};

/// A request is made well before this.
const REQUEST_LIMIT: Duration = Duration::from_secs(20);

const COMPLETED: &str = "conversation.item.input_audio_transcription.completed";

/// One word: 0.6 s of speech.
fn word() -> Vec<i16> {
    [level(600, 5_000), silence(900)].concat()
}

/// A second of sound, for one text.
fn sound() -> Speak {
    Speak::Pieces("audio/pcm", vec![vec![1; 48_000]], Then::End)
}

struct World {
    speech: ScriptedSpeech,
    llm: ScriptedLlm,
    server: Server,
}

impl World {
    /// One unit; every model is a scripted one. The voice is `main`, of French `amelie`, in Canada `julie`, and of Japanese
    /// `haru`.
    async fn start() -> Self {
        let (speech, llm) = (ScriptedSpeech::start().await, ScriptedLlm::start().await);
        let (audio, chat) = (speech.url(), llm.url());
        let mut args = vec!["--stt-url", &audio, "--stt-format", "verbose_json", "--tts-url", &audio];
        for voice in ["main", "fr=amelie", "fr-CA=julie", "ja=haru"] {
            args.extend(["--tts-voice", voice]);
        }
        args.extend(["--llm-url", &chat, "--llm-model", "scripted", "--language-prompt"]);
        let server = Server::fake_with(1, &args).await;
        Self { speech, llm, server }
    }

    async fn client(&self) -> Client {
        self.server.all_units_free().await;
        Client::open(self.server.addr()).await
    }

    /// The user speaks and is answered in the same words.
    async fn says(&self, client: &mut Client, sound_of_it: &[i16], heard: Hear, words: &str) {
        self.speech.hears([heard]);
        self.speech.speaks([sound()]);
        client.stream(sound_of_it).await;
        assert_eq!(client.expect(COMPLETED).await["transcript"], words);
        let answer = client.answer().await;
        assert_eq!((answer.status.as_str(), answer.text.trim()), ("completed", words));
    }

    /// The voice that was asked for last.
    fn voice(&self) -> Value {
        self.speech.texts().pop().expect("a text was spoken")["voice"].clone()
    }

    /// The language that the recogniser was told last.
    fn told(&self) -> Option<String> {
        self.speech.recorded().pop().expect("a recording").fields.get("language").cloned()
    }

    /// What the model was told of the language last.
    fn prompted(&self) -> Option<String> {
        let request = self.llm.requests().pop().expect("a request");
        let instructions = request["messages"][0]["content"].as_str().expect("instructions").to_owned();
        instructions.split_once("\n\nThe user speaks ").map(|(_, rest)| rest.to_owned())
    }
}

/// RC-067: from language to language, as the recogniser has it, and nothing of it in the next session.
#[tokio::test]
async fn the_language_that_was_heard_reaches_the_model_and_the_voice() {
    let world = World::start().await;
    let mut client = world.client().await;
    let humming = "Hm mm hm hm mm hm hm mm.";
    let turns = [
        (Hear::In("Good evening to all of you.", "english"), "main", "English. Answer in English."),
        (Hear::In("Bonsoir à vous tous !", "fr"), "amelie", "French. Answer in French."),
        (Hear::In(humming, "fr-FR"), "amelie", "French. Answer in French."),
        (Hear::Text(humming), "amelie", "French. Answer in French."),
        (Hear::In(humming, "xx"), "amelie", "French. Answer in French."),
        (Hear::In(humming, "en"), "main", "English. Answer in English."),
        (Hear::In("こんばんは、皆さん。", "ja"), "haru", "Japanese. Answer in Japanese."),
        // A language without a voice.
        (Hear::In(humming, "sw"), "main", "Swahili. Answer in Swahili."),
        // The recogniser does not say: the words do.
        (
            Hear::Text("Est-ce que tu peux me dire quel temps il fera demain ?"),
            "amelie",
            "French. Answer in French.",
        ),
    ];
    for (heard, voice, prompted) in turns {
        let (Hear::In(words, _) | Hear::Text(words)) = heard else { unreachable!("a transcript") };
        world.says(&mut client, &utterance(5_000), heard, words).await;
        assert_eq!((world.voice(), world.prompted().as_deref()), (json!(voice), Some(prompted)), "{words}");
        assert_eq!(world.told(), None, "speech of this length shows its language");
    }
    assert_eq!(world.speech.recorded()[0].fields["response_format"], "verbose_json");
    client.close().await;
    let mut next = world.client().await;
    world.says(&mut next, &utterance(5_000), Hear::Text(humming), humming).await;
    assert_eq!((world.voice(), world.prompted(), world.told()), (json!("main"), None, None));
}

/// RC-067: a text is spoken in its own language, and one that does not show it in that of the text before it.
#[tokio::test]
async fn the_voice_follows_the_text() {
    let world = World::start().await;
    let mut client = world.client().await;
    world
        .says(
            &mut client,
            &utterance(5_000),
            Hear::In("Good evening to all of you.", "en"),
            "Good evening to all of you.",
        )
        .await;

    let french = ["Est-ce que tu peux me dire quel temps il fera demain matin ? ", "Oui."].map(str::to_owned);
    world.llm.script([Script::Say(french.to_vec())]);
    world.speech.speaks([sound(), Speak::Pieces("audio/pcm", vec![vec![1; 48_000]], Then::Stall)]);
    let before = world.speech.texts().len();
    client.send(&json!({ "type": "response.create" })).await;
    let created = client.expect("response.created").await;
    let mut texts = Vec::new();
    while texts.len() < 2 {
        client.expect("response.output_audio.delta").await;
        texts = world.speech.texts().split_off(before);
    }
    assert!(texts.iter().all(|text| text["voice"] == "amelie"), "{texts:?}");
    // The user breaks in, in English.
    let english = "Tell me more about the garden.";
    world.speech.hears([Hear::In(english, "en")]);
    world.speech.speaks([sound()]);
    client.stream(&utterance(5_000)).await;
    assert_eq!(client.rest_of_answer(&created).await.status, "cancelled");
    world.speech.abandoned(1, REQUEST_LIMIT).await;
    assert_eq!(client.answer().await.text.trim(), english);
    assert_eq!(world.voice(), "main");

    for words in ["Yes.", "What will the weather be like tomorrow?"] {
        world.speech.speaks([sound()]);
        client.ask(words).await;
        assert_eq!(client.answer().await.text.trim(), words);
        assert_eq!(world.voice(), "main", "{words}");
    }
}

/// RC-037: the language that is set is told to the recogniser, whatever it is; else one word is heard in the language that
/// was spoken before; and nothing is dropped for its language.
#[tokio::test]
async fn one_word_is_heard_in_the_language_that_is_set_or_was_spoken_before() {
    let world = World::start().await;
    let mut client = world.client().await;
    let words = [
        ("en", "Continue."),
        ("de", "Weiter."),
        ("fr", "Encore."),
        ("es", "Sigue."),
        ("zh", "继续"),
        ("hi", "जारी"),
        ("fr-FR", "Encore."),
        ("xx", "Qapla'."),
    ];
    for (code, words) in words {
        client.update(json!({ "audio": { "input": { "transcription": { "language": code } } } })).await;
        world.says(&mut client, &word(), Hear::Text(words), words).await;
        assert_eq!(world.told().as_deref(), Some(code));
    }
    client.close().await;

    let mut client = world.client().await;
    for (_, words) in words {
        world.says(&mut client, &word(), Hear::Text(words), words).await;
        assert_eq!(world.told(), None, "of {words} alone nobody knows, and nothing was said before");
    }
    for _ in 0..10 {
        let english = "Tell me more about the garden.";
        world.says(&mut client, &utterance(5_000), Hear::In(english, "en"), english).await;
        assert_eq!(world.told(), None);
    }
    for (code, words) in words {
        world.says(&mut client, &word(), Hear::In(words, code), words).await;
        assert_eq!(world.told().as_deref(), Some("en"), "{words}");
        assert_eq!(world.prompted().as_deref(), Some("English. Answer in English."), "{words}");
    }
    let other = "Habari za asubuhi rafiki yangu";
    let five_seconds = [level(5_000, 5_000), silence(900)].concat();
    world.says(&mut client, &five_seconds, Hear::In(other, "swahili"), other).await;
    assert_eq!((world.told(), world.voice()), (None, json!("main")));
    client.update(json!({ "audio": { "input": { "transcription": { "language": "fr" } } } })).await;
    world.says(&mut client, &word(), Hear::Text("Oui."), "Oui.").await;
    client.update(json!({ "audio": { "input": { "transcription": { "language": "fr-CA" } } } })).await;
    for words in ["Oui.", "La capitale de la France est Paris."] {
        world.says(&mut client, &word(), Hear::Text(words), words).await;
        assert_eq!((world.told().as_deref(), world.voice()), (Some("fr-CA"), json!("julie")), "{words}");
    }
    client.update(json!({ "audio": { "input": { "transcription": { "language": "fr" } } } })).await;
    world.says(&mut client, &word(), Hear::Text("Oui."), "Oui.").await;
    client.update(json!({ "audio": { "input": { "transcription": { "language": null } } } })).await;
    world.says(&mut client, &word(), Hear::Text("Continue."), "Continue.").await;
    assert_eq!((world.told().as_deref(), world.voice()), (Some("fr"), json!("amelie")));
}
