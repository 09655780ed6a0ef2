//! Languages: their codes, their names, and the language of a text.

mod code;
mod name;
mod recognition;

pub use code::Language;
pub use recognition::is_evidence;
