//! Phonemes by espeak-ng, for users who have it and ask for it (`--phonemizer espeak`).
//!
//! *Thread:* the one `tts` worker that owns it · *Never:* shared, linked or shipped.
//!
//! espeak-ng is GPL, and this program contains nothing of it. Its library is opened with dlopen at the user's request,
//! so the choice and the licence are the user's. The default is [`crate::text::phonemes::DictionaryPhonemizer`].
//!
//! # Justification of the unsafe code
//! The library has a C interface and no safe binding that opens it at run time. Everything unsafe is in this file: four
//! function pointers, called with pointers to buffers that outlive the call.

#![expect(unsafe_code, reason = "the C interface of libespeak-ng, opened at run time")]

use super::ModelError;
use crate::text::normalise;
use crate::text::phonemes::{Phonemize, is_voice_symbol};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use unicode_normalization::UnicodeNormalization as _;

/// Names under which systems install the library.
const LIBRARY_NAMES: [&str; 4] =
    ["libespeak-ng.so.1", "libespeak-ng.so", "libespeak-ng.1.dylib", "libespeak-ng.dylib"];

/// The voice whose phonemes the English Piper voices were trained on. Source: `espeak.voice` of their `.onnx.json`.
const VOICE: &CStr = c"en-us";

// Source: `espeak-ng/speak_lib.h` of espeak-ng 1.51.
/// `AUDIO_OUTPUT_RETRIEVAL`: open no sound device.
const AUDIO_OUTPUT_RETRIEVAL: c_int = 1;
/// `espeakINITIALIZE_DONT_EXIT`: report missing data instead of ending the process.
const INITIALIZE_DONT_EXIT: c_int = 0x8000;
/// `espeakCHARS_UTF8`: the text is UTF-8.
const CHARS_UTF8: c_int = 1;
/// Phoneme mode: the International Phonetic Alphabet.
const PHONEMES_IPA: c_int = 0x02;
/// `EE_OK`: status of success.
const OK: c_int = 0;

type Initialize = unsafe extern "C" fn(c_int, c_int, *const c_char, c_int) -> c_int;
type SetVoiceByName = unsafe extern "C" fn(*const c_char) -> c_int;
type TextToPhonemes = unsafe extern "C" fn(*mut *const c_void, c_int, c_int) -> *const c_char;

/// Set by the first instance. The library keeps its state in globals, so a second instance is impossible.
static TAKEN: OnceLock<()> = OnceLock::new();

/// espeak-ng, ready to turn American English into phonemes.
///
/// A process loads the library at most once, because the library's state is global. A server that uses espeak-ng
/// therefore has one TTS worker.
#[derive(Debug)]
pub struct Espeak {
    text_to_phonemes: TextToPhonemes,
    /// The normalised sentence.
    text: String,
    /// One clause of `text`, ended by a zero byte.
    clause: Vec<u8>,
    /// Phonemes of the clause, as the library returns them.
    raw: String,
    /// Keeps the code of `text_to_phonemes` in memory. Never unloaded: threads that the library started outlive
    /// `Espeak`.
    _library: ManuallyDrop<Library>,
}

impl Espeak {
    /// Opens the library: the file `library`, or else the system's own. The library's data is in `data`, or else in
    /// the place of its installation.
    ///
    /// # Errors
    /// - [`ModelError::Missing`] if no library can be opened, or if its data or its American English voice is missing;
    /// - [`ModelError::Wrong`] if the library lacks a function;
    /// - [`ModelError::Runtime`] if this process has loaded the library before.
    pub fn load(library: Option<&Path>, data: Option<&Path>) -> Result<Self, ModelError> {
        let (path, library) = open(library)?;
        let initialize: Initialize = symbol(&library, &path, c"espeak_Initialize")?;
        let set_voice_by_name: SetVoiceByName = symbol(&library, &path, c"espeak_SetVoiceByName")?;
        let text_to_phonemes: TextToPhonemes = symbol(&library, &path, c"espeak_TextToPhonemes")?;
        if TAKEN.set(()).is_err() {
            return Err(ModelError::Runtime {
                context: "load espeak-ng",
                message: "found it loaded already, expected one instance in a process: use one TTS worker"
                    .to_owned(),
            });
        }
        let shown = data.map_or_else(|| PathBuf::from("espeak-ng-data"), Path::to_path_buf);
        let missing =
            |expected: &str| ModelError::Missing { path: shown.clone(), expected: expected.to_owned() };
        let data = match data {
            Some(data) => Some(
                CString::new(data.as_os_str().as_encoded_bytes())
                    .map_err(|_| missing("a path without zero bytes"))?,
            ),
            None => None,
        };
        let data = data.as_ref().map_or(ptr::null(), |data| data.as_ptr());
        // SAFETY: the signature is that of speak_lib.h; `data` is null or a C string that lives until the call returns;
        // `TAKEN` makes this the only call of the process.
        let rate = unsafe { initialize(AUDIO_OUTPUT_RETRIEVAL, 0, data, INITIALIZE_DONT_EXIT) };
        if rate <= 0 {
            return Err(missing("the data of espeak-ng (Debian: espeak-ng-data)"));
        }
        // SAFETY: the signature is that of speak_lib.h; the library is initialised; the name is a static C string.
        let status = unsafe { set_voice_by_name(VOICE.as_ptr()) };
        if status != OK {
            return Err(missing("the voice en-us among the data of espeak-ng"));
        }
        Ok(Self {
            text_to_phonemes,
            text: String::new(),
            clause: Vec::new(),
            raw: String::new(),
            _library: ManuallyDrop::new(library),
        })
    }

    /// Appends the phonemes of `clause`, which holds no sentence punctuation.
    fn clause(&mut self, clause: &str, out: &mut String) {
        self.clause.clear();
        self.clause.extend(clause.bytes().filter(|&byte| byte != 0));
        self.clause.push(0);
        self.raw.clear();
        let mut rest: *const c_void = self.clause.as_ptr().cast();
        // The library may still split the clause; each call takes one part and moves `rest` behind that part.
        while !rest.is_null() {
            // SAFETY: the signature is that of speak_lib.h; `rest` points into `self.clause`, which ends in a zero byte
            // and is not touched meanwhile; `&mut self` and `TAKEN` keep every other call out of the library.
            let phonemes = unsafe { (self.text_to_phonemes)(&raw mut rest, CHARS_UTF8, PHONEMES_IPA) };
            let Some(phonemes) = NonNull::new(phonemes.cast_mut()) else { break };
            // SAFETY: the library returns a C string in a buffer of its own, valid until the next call.
            let phonemes = unsafe { CStr::from_ptr(phonemes.as_ptr()) };
            self.raw.push_str(&phonemes.to_string_lossy());
            self.raw.push(' ');
        }
        write(&self.raw, out);
    }
}

impl Phonemize for Espeak {
    fn phonemes(&mut self, sentence: &str, out: &mut String) {
        let mut text = std::mem::take(&mut self.text);
        normalise(sentence, &mut text);
        let start = out.len();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let end = clause_end(rest);
            let before = out.len();
            self.clause(&rest[..end], out);
            let spoken = out.len() > before;
            rest = &rest[end..];
            if let Some(mark) = rest.chars().next() {
                rest = &rest[mark.len_utf8()..];
                if spoken {
                    out.push(mark);
                }
            }
            if spoken {
                out.push(' ');
            }
        }
        let length = start + out[start..].trim_end().len();
        out.truncate(length);
        self.text = text;
    }
}

/// Returns the bytes up to the first punctuation mark that ends a clause: one before white space or the end.
fn clause_end(text: &str) -> usize {
    let marks = text.char_indices().filter(|(_, c)| matches!(c, ',' | '.' | '!' | '?' | ';' | ':'));
    let mut ends = marks.filter(|(at, _)| text[at + 1..].chars().next().is_none_or(char::is_whitespace));
    ends.next().map_or(text.len(), |(at, _)| at)
}

/// Appends the symbols of `raw` that the voice has, with one space between words. Marks of a change of language, such
/// as "(fr)", are left out.
fn write(raw: &str, out: &mut String) {
    let mut first = true;
    for word in raw.split_whitespace() {
        let before = out.len();
        if !first {
            out.push(' ');
        }
        let start = out.len();
        let mut mark = false;
        for c in word.nfd() {
            match c {
                '(' => mark = true,
                ')' => mark = false,
                // Stands for a joined sound in some versions; the voice was not trained on it.
                'g' if !mark => out.push('ɡ'),
                _ if !mark && is_voice_symbol(c) && c != '-' => out.push(c),
                _ => {}
            }
        }
        if out.len() == start {
            out.truncate(before);
        } else {
            first = false;
        }
    }
}

/// Opens the library at `path`, or else the first of [`LIBRARY_NAMES`] that the system finds.
fn open(path: Option<&Path>) -> Result<(PathBuf, Library), ModelError> {
    let candidates: Vec<PathBuf> = match path {
        Some(path) => vec![path.to_path_buf()],
        None => LIBRARY_NAMES.iter().map(PathBuf::from).collect(),
    };
    for path in &candidates {
        // SAFETY: opening a library runs its initialisers. The file is the one that the user named, or the system's own
        // espeak-ng; its initialisers are those of the C run-time library.
        if let Ok(library) = unsafe { Library::new(path) } {
            return Ok((path.clone(), library));
        }
    }
    Err(ModelError::Missing {
        path: candidates[0].clone(),
        expected: "the library of espeak-ng (Debian: libespeak-ng1), or use the built-in phonemizer"
            .to_owned(),
    })
}

/// Returns the function `name`, of type `T`, from `library`, which was opened from `path`.
fn symbol<T: Copy>(library: &Library, path: &Path, name: &CStr) -> Result<T, ModelError> {
    // SAFETY: each caller names a function of speak_lib.h and gives its type of that header. The pointer is kept no
    // longer than the library: both are in one `Espeak`, or end with `load`.
    let found = unsafe { library.get::<T>(name) };
    found.map(|symbol| *symbol).map_err(|error| ModelError::Wrong {
        path: path.to_path_buf(),
        found: error.to_string(),
        expected: format!("the function {}", name.to_string_lossy()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_end_at_punctuation_before_white_space() {
        assert_eq!(clause_end("one, two"), 3);
        assert_eq!(clause_end("a.b c"), 5);
        assert_eq!(clause_end("end."), 3);
        assert_eq!(clause_end(""), 0);
    }

    #[test]
    fn only_symbols_of_the_voice_are_written() {
        let mut out = String::from("x ");
        write(" (fr)ʃˈɑ̃(en-us)  gɡ ☃ - ɐ\n", &mut out);
        assert_eq!(out, "x ʃˈɑ\u{303} ɡɡ ɐ");
    }

    #[test]
    fn a_missing_library_is_named() {
        let error =
            Espeak::load(Some(Path::new("/nowhere/libespeak-ng.so")), None).expect_err("no such file");
        assert!(
            matches!(&error, ModelError::Missing { path, .. } if path.ends_with("libespeak-ng.so")),
            "{error}"
        );
    }

    /// The only test that uses the library, because a process has one instance.
    #[test]
    #[ignore = "needs libespeak-ng1 (GPL), which is the user's choice to install"]
    fn the_system_library_gives_phonemes() {
        let mut espeak = Espeak::load(None, None).expect("libespeak-ng1 and espeak-ng-data are installed");
        let mut out = String::new();
        espeak.phonemes("Hello, world! It is 9:30.", &mut out);
        assert_eq!(out, "həlˈoʊ, wˈɜːld! ɪɾ ɪz nˈaɪn θˈɜːɾi.");
        for text in ["", "…", "\0a\0", "你好 résumé", "?!"] {
            out.clear();
            espeak.phonemes(text, &mut out);
            assert!(out.chars().all(is_voice_symbol), "{text}: {out}");
        }
        let error = Espeak::load(None, None).expect_err("one instance in a process");
        assert!(matches!(error, ModelError::Runtime { .. }), "{error}");
    }
}
