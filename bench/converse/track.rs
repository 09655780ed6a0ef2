//! The audio that a talker repeats: appends made once and shared by all sessions, and the bounds of the speech in them.

use std::path::PathBuf;

use antiphon::door::audio::SampleRate;
use antiphon::door::talk::Recording;
use anyhow::{Context, bail};
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// Grid of a track's length. It is a multiple of 32 ms and of each length of chunk. So in every round speech lies the
/// same in chunks and detector windows, and differences between two lags are the server's.
const GRID_MS: usize = 800;

/// Length of a track of one synthetic utterance.
const SYNTHETIC_TRACK_MS: usize = 4 * GRID_MS;

/// Length of a synthetic utterance.
const SYNTHETIC_SPEECH_MS: usize = 640;

/// Value of the samples of a synthetic utterance: speech to an energy detector, a number to a fake recogniser.
pub(crate) const SPEECH_LEVEL: i16 = 8_000;

/// Silence before each utterance, and least silence after it.
pub(crate) const LEAD_MS: usize = GRID_MS;
const TRAIL_MS: usize = 2 * GRID_MS;

/// Ratio of the recording's loudest sample to the least loudest sample of a block of speech: 40 dB.
const ONSET_RATIO: i32 = 100;

/// Length of a block in which speech is looked for.
const ONSET_BLOCK_MS: usize = 10;

/// Bounds of one utterance within the track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Utterance {
    /// First sample of speech, ms.
    pub(crate) onset_ms: u64,
    /// End of the last sample of speech, ms.
    pub(crate) end_ms: u64,
    /// Chunk with the first sample.
    pub(crate) onset_chunk: u64,
    /// Chunk with the last sample.
    pub(crate) end_chunk: u64,
}

/// Appends of one round.
#[derive(Debug)]
pub(crate) struct Track {
    appends: Vec<Utf8Bytes>,
    utterances: Vec<Utterance>,
    chunk_ms: usize,
}

impl Track {
    /// Cuts recordings, or a synthetic utterance if there are none, into chunks of `chunk_ms`.
    ///
    /// # Errors
    /// If a recording cannot be used at this rate, or the grid is no multiple of the chunk.
    pub(crate) fn new(speech: &[PathBuf], chunk_ms: usize, rate_hz: usize) -> anyhow::Result<Self> {
        if chunk_ms == 0 || !GRID_MS.is_multiple_of(chunk_ms) || !1_000_usize.is_multiple_of(chunk_ms) {
            bail!("--chunk-ms {chunk_ms}, expected a divisor of {GRID_MS} and 1000, as 20, 40, 100");
        }
        let rate = u32::try_from(rate_hz).ok().and_then(SampleRate::new);
        let rate = rate.with_context(|| format!("--rate {rate_hz}, expected 8000 to 48000"))?;
        let per_ms = rate_hz / 1_000;
        let mut samples = Vec::new();
        let mut spans = Vec::new();
        if speech.is_empty() {
            let speech_at = LEAD_MS * per_ms..(LEAD_MS + SYNTHETIC_SPEECH_MS) * per_ms;
            samples.resize(SYNTHETIC_TRACK_MS * per_ms, 0);
            samples[speech_at.clone()].fill(SPEECH_LEVEL);
            spans.push(speech_at);
        }
        for path in speech {
            let recording = Recording::load(path, rate)?;
            let begin = samples.len() + LEAD_MS * per_ms;
            let onset = onset(recording.samples(), ONSET_BLOCK_MS * per_ms);
            let onset = onset.with_context(|| format!("{}: no speech", path.display()))?;
            spans.push(begin + onset..begin + recording.speech_end());
            samples.resize(begin, 0);
            samples.extend_from_slice(recording.samples());
            let grid = GRID_MS * per_ms;
            samples.resize((samples.len() + TRAIL_MS * per_ms).next_multiple_of(grid), 0);
        }
        let chunk = chunk_ms * per_ms;
        let silence = append(&vec![0; chunk]);
        let appends = samples.chunks(chunk).map(|samples| {
            if samples.iter().all(|&sample| sample == 0) { silence.clone() } else { append(samples) }
        });
        let utterance = |span: &std::ops::Range<usize>| Utterance {
            onset_ms: (span.start / per_ms) as u64,
            end_ms: span.end.div_ceil(per_ms) as u64,
            onset_chunk: (span.start / chunk) as u64,
            end_chunk: ((span.end - 1) / chunk) as u64,
        };
        Ok(Self { appends: appends.collect(), utterances: spans.iter().map(utterance).collect(), chunk_ms })
    }

    /// Returns the append of chunk `number`, counted from the start of the session.
    pub(crate) fn append(&self, number: u64) -> &Utf8Bytes {
        &self.appends[index(number % self.appends.len() as u64)]
    }

    pub(crate) fn chunk_ms(&self) -> u64 {
        self.chunk_ms as u64
    }

    /// Returns the length of a round.
    pub(crate) fn period_ms(&self) -> u64 {
        (self.appends.len() * self.chunk_ms) as u64
    }

    /// Returns the number of utterances of a round.
    pub(crate) fn utterances(&self) -> usize {
        self.utterances.len()
    }

    /// Returns utterance `number`, counted from the start of the session.
    pub(crate) fn utterance(&self, number: u64) -> Utterance {
        let per_round = self.utterances.len() as u64;
        let (round, within) = (number / per_round, number % per_round);
        let Utterance { onset_ms, end_ms, onset_chunk, end_chunk } = self.utterances[index(within)];
        let (ms, chunks) = (round * self.period_ms(), round * self.appends.len() as u64);
        Utterance {
            onset_ms: ms + onset_ms,
            end_ms: ms + end_ms,
            onset_chunk: chunks + onset_chunk,
            end_chunk: chunks + end_chunk,
        }
    }

    /// Returns the last utterance that has begun by `at_ms` of the session's audio.
    pub(crate) fn begun_by(&self, at_ms: u64) -> Option<u64> {
        let before = at_ms / self.period_ms() * self.utterances.len() as u64;
        let begun = self.utterances.iter().filter(|utterance| utterance.onset_ms <= at_ms % self.period_ms());
        (before + begun.count() as u64).checked_sub(1)
    }
}

/// Converts a remainder of the length of a list to an index.
fn index(number: u64) -> usize {
    usize::try_from(number).expect("below the length of a list")
}

/// Returns the first sample of the first block of speech.
fn onset(samples: &[i16], block: usize) -> Option<usize> {
    let loudest = |samples: &[i16]| samples.iter().map(|&sample| i32::from(sample).abs()).max();
    let level = loudest(samples)? / ONSET_RATIO;
    samples.chunks(block).position(|block| loudest(block) > Some(level)).map(|number| number * block)
}

/// Returns an `input_audio_buffer.append` of these samples.
pub(crate) fn append(samples: &[i16]) -> Utf8Bytes {
    let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let audio = base64_simd::STANDARD.encode_to_string(bytes);
    format!(r#"{{"type":"input_audio_buffer.append","audio":"{audio}"}}"#).into()
}
