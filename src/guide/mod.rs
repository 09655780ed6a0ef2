//! How Antiphon is built, in chapters. No code here.

#[doc = include_str!("architecture.md")]
pub mod architecture {}

#[doc = include_str!("realtime.md")]
pub mod realtime {}

#[doc = include_str!("protocol.md")]
pub mod protocol {}

#[doc = include_str!("memory.md")]
pub mod memory {}

#[doc = include_str!("language_model.md")]
pub mod language_model {}

#[doc = include_str!("moving_over.md")]
pub mod moving_over {}

#[doc = include_str!("flags.md")]
pub mod flags {}
