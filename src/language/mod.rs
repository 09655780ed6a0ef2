//! Languages: their codes, their names, and what a text is written in.

mod code;
mod name;
mod recognition;

pub use code::Language;
pub use recognition::is_evidence;
