//! **Fakes** of the models: pure functions of their input, for tests of the engine and for benches (`serve
//! --stages fake`).
//!
//! *Thread:* as the models that they stand for · *Never:* a heap call, except where the caller's transcript
//! grows.
//!
//! The fakes share one little language, `say dur=<s> tag=<int> rt=<x|0> stamp=<0|1|2> lat=<s>`:
//!
//! - `dur`: seconds of samples of the value `tag`;
//! - `rt`: the samples are released at this multiple of real time (0: at once);
//! - `stamp`: if not 0, the first 8 bytes of a frame become a clock reading;
//! - `lat`: the voice is busy for this many seconds first (default 0), and a stop has no effect meanwhile, as
//!   with a network that runs.
//!
//! The fake recogniser answers an utterance with such a line, whose `tag` is the utterance's median level. The
//! fake voice carries the line out, so the samples show a test whose audio arrived. Any other text becomes a
//! tone, so that a scripted language model can drive a whole conversation.

use std::fmt::Write as _;
use std::time::Duration;

use super::{
    DETECTOR_WINDOW, DetectorStream, ModelError, Speech, SpeechSource, SttModel, TtsModel, VadModel,
};
use crate::audio::SampleRate;
use crate::language::Language;
use crate::limits::{PIECE_SAMPLES_MAX, UTTERANCE_SAMPLES_MAX};

/// Fake detector: a window is speech if the mean of |sample| exceeds 300. Has no state.
#[derive(Clone, Debug)]
pub struct EnergyVad {
    probabilities: Box<[f32]>,
}

impl EnergyVad {
    /// Creates a detector for up to `rows_max` windows at once.
    #[must_use]
    pub fn new(rows_max: usize) -> Self {
        Self { probabilities: vec![0.0; rows_max].into() }
    }
}

impl VadModel for EnergyVad {
    fn rows_max(&self) -> usize {
        self.probabilities.len()
    }

    fn load(&mut self, row: usize, _stream: &DetectorStream, window: &[i16; DETECTOR_WINDOW]) {
        let sum: usize = window.iter().map(|&sample| usize::from(sample.unsigned_abs())).sum();
        let speech = sum > SPEECH_LEVEL * DETECTOR_WINDOW;
        self.probabilities[row] = if speech { 1.0 } else { 0.0 };
    }

    fn run(&mut self, rows: usize) -> Result<(), ModelError> {
        assert!(rows <= self.probabilities.len(), "{rows} rows, at most {}", self.probabilities.len());
        Ok(())
    }

    fn store(&self, row: usize, _stream: &mut DetectorStream) -> f32 {
        self.probabilities[row]
    }
}

/// Fake recogniser: transcribes every utterance as `say dur=0.5 tag=<median |sample|>`.
#[derive(Clone, Debug)]
pub struct FakeStt {
    /// Number of samples of each absolute value.
    counts: Box<[u32; LEVELS]>,
}

impl FakeStt {
    /// Creates a recogniser.
    #[must_use]
    pub fn new() -> Self {
        Self { counts: vec![0; LEVELS].try_into().expect("the length is right") }
    }

    /// Returns the median of |sample|; the lower of the two in the middle.
    fn level(&mut self, audio: &[i16]) -> usize {
        self.counts.fill(0);
        for sample in audio {
            self.counts[usize::from(sample.unsigned_abs())] += 1;
        }
        let mut below = 0;
        let middle = audio.len().div_ceil(2);
        self.counts
            .iter()
            .position(|&count| {
                below += count as usize;
                below >= middle
            })
            .unwrap_or(0)
    }
}

impl Default for FakeStt {
    fn default() -> Self {
        Self::new()
    }
}

impl SttModel for FakeStt {
    fn samples_max(&self) -> usize {
        UTTERANCE_SAMPLES_MAX
    }

    fn transcribe(
        &mut self,
        audio: &[i16],
        stale: &dyn Fn() -> bool,
        transcript: &mut String,
    ) -> Result<Option<Language>, ModelError> {
        transcript.clear();
        if stale() {
            return Err(ModelError::Stale);
        }
        if !audio.is_empty() {
            let tag = self.level(audio);
            write!(transcript, "say dur={ANSWER_SECONDS} tag={tag}")
                .expect("writing to a string does not fail");
        }
        Ok(None)
    }
}

/// Fake voice: obeys the little language and hums any other text.
#[derive(Clone, Copy, Debug, Default)]
pub struct FakeTts;

impl TtsModel for FakeTts {
    fn begin(
        &mut self,
        _speed: f32,
        session_rate: SampleRate,
        speech: &mut Speech,
    ) -> Result<(), ModelError> {
        speech.rate = session_rate;
        Ok(())
    }

    fn proceed(
        &mut self,
        stale: &dyn Fn() -> bool,
        speech: &mut Speech,
        sink: &mut dyn FnMut(&[f32]),
    ) -> Result<bool, ModelError> {
        if stale() {
            return Err(ModelError::Stale);
        }
        if let Some(order) = Order::parse(&speech.text) {
            order.keep_busy();
            speech.source = order.source(speech.rate);
            return Ok(false);
        }
        let (from, whole) = (speech.taken, hum_samples(speech));
        let piece = from..whole.min(from + PIECE_SAMPLES_MAX);
        speech.taken = piece.end;
        for from in piece.clone().step_by(HUM_SAMPLES) {
            sink(&hum(from, speech.rate)[..HUM_SAMPLES.min(piece.end - from)]);
        }
        Ok(speech.taken < whole)
    }
}

/// One line of the little language.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Order {
    seconds: f64,
    tag: i16,
    pace: f32,
    stamp: bool,
    latency_seconds: f64,
}

impl Order {
    /// Returns the first order in `text`: the word `say`, then settings in any order, up to the first word
    /// that is no setting. The defaults are 0.5 s, tag 0, at once, no stamp and no latency. A full stop after
    /// the line is not part of the order.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace().skip_while(|word| !word.eq_ignore_ascii_case("say"));
        words.next()?;
        let mut order =
            Self { seconds: ANSWER_SECONDS, tag: 0, pace: 0.0, stamp: false, latency_seconds: 0.0 };
        let mut any = false;
        for word in words {
            let Some((key, value)) = word.split_once('=') else { break };
            let value = value.trim_end_matches(['.', ',', ';', '!', '?']);
            match key {
                "dur" => order.seconds = seconds(value)?,
                "tag" => order.tag = value.parse().ok()?,
                "rt" => order.pace = value.parse().ok().filter(|pace| (0.0..=1e6).contains(pace))?,
                "stamp" => order.stamp = value.parse::<u8>().ok()? > 0,
                "lat" => order.latency_seconds = seconds(value)?,
                _ => break,
            }
            any = true;
        }
        any.then_some(order)
    }

    #[expect(clippy::disallowed_methods, reason = "a fake that pretends to be a slow network")]
    fn keep_busy(self) {
        if self.latency_seconds > 0.0 {
            std::thread::sleep(Duration::from_secs_f64(self.latency_seconds));
        }
    }

    fn source(self, rate: SampleRate) -> SpeechSource {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number from 0 to an hour of samples"
        )]
        let remaining = (self.seconds * f64::from(rate.hz())).round() as u64;
        SpeechSource::Constant { value: self.tag, remaining, pace: self.pace, stamp: self.stamp }
    }
}

fn seconds(value: &str) -> Option<f64> {
    value.parse().ok().filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds))
}

/// Returns the length of the tone for the text of `speech`: 60 ms for each character.
fn hum_samples(speech: &Speech) -> usize {
    let per_character = usize::try_from(speech.rate.samples_in(60)).expect("60 ms are some thousand samples");
    speech.text.trim().chars().count() * per_character
}

/// Returns the samples from `from` on of a 440 Hz tone at a quarter of full scale.
fn hum(from: usize, rate: SampleRate) -> [f32; HUM_SAMPLES] {
    let step = std::f64::consts::TAU * 440.0 / f64::from(rate.hz());
    #[expect(clippy::cast_possible_truncation, reason = "the nearest float is what is meant")]
    std::array::from_fn(|n| (0.25 * (step * (from + n) as f64).sin()) as f32)
}

/// Samples of the tone that are made at once.
const HUM_SAMPLES: usize = 64;

/// Mean of |sample| above which a window is speech.
const SPEECH_LEVEL: usize = 300;

/// Number of absolute values of a 16-bit sample.
const LEVELS: usize = 32_769;

/// Seconds of the answer to an utterance. Any length would do; half a second is five frames of 100 ms.
const ANSWER_SECONDS: f64 = 0.5;

/// Longest order and longest latency, seconds: an hour.
const SECONDS_MAX: f64 = 3_600.0;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clause that the fake voice has begun.
    fn clause(text: &str, rate: SampleRate) -> Speech {
        let mut speech = Speech::new(text.len(), 0, SampleRate::HZ_8K);
        speech.text.push_str(text);
        FakeTts.begin(1.0, rate, &mut speech).unwrap();
        speech
    }

    #[test]
    fn a_window_is_speech_above_the_level_only() {
        let mut vad = EnergyVad::new(3);
        let mut stream = DetectorStream::new();
        let mut loud = [300; DETECTOR_WINDOW];
        vad.load(0, &stream, &loud);
        loud[7] = -301;
        vad.load(1, &stream, &loud);
        vad.load(2, &stream, &[i16::MIN; DETECTOR_WINDOW]);
        vad.run(3).unwrap();
        assert_eq!([0, 1, 2].map(|row| vad.store(row, &mut stream)), [0.0, 1.0, 1.0]);
    }

    #[test]
    fn what_is_heard_names_the_median_level() {
        let mut stt = FakeStt::new();
        let mut transcript = String::from("old");
        let mut audio = [-1_234; 100];
        audio[..40].fill(0);
        stt.transcribe(&audio, &|| false, &mut transcript).unwrap();
        assert_eq!(transcript, "say dur=0.5 tag=1234");
        stt.transcribe(&[5, i16::MIN], &|| false, &mut transcript).unwrap();
        assert_eq!(transcript, "say dur=0.5 tag=5");
        stt.transcribe(&[], &|| false, &mut transcript).unwrap();
        assert_eq!(transcript, "");
        assert!(matches!(stt.transcribe(&audio, &|| true, &mut transcript), Err(ModelError::Stale)));
    }

    #[test]
    fn an_order_is_carried_out_at_the_rate_of_the_session() {
        let mut speech = clause("say dur=1.5 tag=-77 rt=2 stamp=1", SampleRate::HZ_24K);
        let done = FakeTts.proceed(&|| true, &mut speech, &mut |_| ());
        assert!(matches!(done, Err(ModelError::Stale)));
        assert!(!FakeTts.proceed(&|| false, &mut speech, &mut |_| panic!("no samples")).unwrap());
        let expected = SpeechSource::Constant { value: -77, remaining: 36_000, pace: 2.0, stamp: true };
        assert_eq!((speech.source, speech.rate), (expected, SampleRate::HZ_24K));
    }

    #[test]
    fn a_voice_that_is_busy_is_not_stopped() {
        let (asked, mut speech) = (Cell::new(0), clause("say tag=7 lat=0.05", SampleRate::HZ_24K));
        let stale = || asked.replace(asked.get() + 1) > 0;
        FakeTts.proceed(&stale, &mut speech, &mut |_| ()).unwrap();
        let expected = SpeechSource::Constant { value: 7, remaining: 12_000, pace: 0.0, stamp: false };
        assert_eq!((speech.source, asked.get()), (expected, 1));
    }

    #[test]
    fn only_orders_are_orders() {
        let order = |text| Order::parse(text);
        let heard = Order { seconds: 0.5, tag: 1234, pace: 0.0, stamp: false, latency_seconds: 0.0 };
        assert_eq!(order("say dur=0.5 tag=1234"), Some(heard));
        assert_eq!(order("You said: Say tag=1234."), Some(heard));
        assert_eq!(order("say tag=1234 please"), Some(heard));
        assert_eq!(order("say tag=1234 lat=1.5."), Some(Order { latency_seconds: 1.5, ..heard }));
        for text in [
            "",
            "say",
            "say hello",
            "dur=1 tag=2",
            "say dur=-1",
            "say dur=nan",
            "say tag=40000",
            "say dur=1e9",
            "say lat=-1",
        ] {
            assert_eq!(order(text), None, "{text}");
        }
    }

    #[test]
    fn other_text_is_hummed_in_pieces() {
        for (text, characters, pieces_expected) in [("Hello", 5, 1), (&*"x".repeat(20), 20, 2), ("  ", 0, 1)]
        {
            let mut speech = clause(text, SampleRate::HZ_16K);
            let (mut samples, mut pieces, mut more) = (Vec::new(), 0, true);
            while more {
                let before = samples.len();
                let mut sink = |piece: &[f32]| samples.extend_from_slice(piece);
                more = FakeTts.proceed(&|| false, &mut speech, &mut sink).unwrap();
                assert!(samples.len() - before <= PIECE_SAMPLES_MAX);
                pieces += 1;
            }
            assert_eq!((samples.len(), pieces), (characters * 960, pieces_expected), "{text}");
            let crossings = samples.windows(2).filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0).count();
            let expected = characters * 960 * 440 / 16_000;
            assert!(crossings.abs_diff(expected) <= 1, "{crossings} in {characters} times 60 ms of 440 Hz");
        }
    }
}
