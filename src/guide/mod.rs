//! How Antiphon is built, in chapters. No code here.
//!
//! | read | to learn |
//! |---|---|
//! | [`glossary`] | the words of the code and of these chapters |
//! | [`frame`] | how audio gets from the socket to the recogniser, and the answer back |
//! | [`cancel`] | how an answer ends everywhere at once, and how a unit becomes free |
//! | [`architecture`] | zones, threads, who may import whom, what is absent |
//! | [`memory`] | every atomic: who writes, who reads, what it publishes |
//! | [`realtime`] | what stage threads may do, and how that is known |
//! | [`protocol`] | the wire: every event, formats, limits, endpoints |
//! | [`language_model`] | how language models are asked, and what is made of their answers |
//! | [`testing`] | layers of tests, what each proves, how to add one |
//! | [`flags`] | every flag and command |
//! | [`moving_over`] | what changes for users of huggingface/speech-to-speech |
//! | [`changelog`] | what has changed for users |

#[doc = include_str!("glossary.md")]
pub mod glossary {}

#[doc = include_str!("frame.md")]
pub mod frame {}

#[doc = include_str!("cancel.md")]
pub mod cancel {}

#[doc = include_str!("architecture.md")]
pub mod architecture {}

#[doc = include_str!("memory.md")]
pub mod memory {}

#[doc = include_str!("realtime.md")]
pub mod realtime {}

#[doc = include_str!("protocol.md")]
pub mod protocol {}

#[doc = include_str!("language_model.md")]
pub mod language_model {}

#[doc = include_str!("testing.md")]
pub mod testing {}

#[doc = include_str!("flags.md")]
pub mod flags {}

#[doc = include_str!("moving_over.md")]
pub mod moving_over {}

#[doc = include_str!("changelog.md")]
pub mod changelog {}
