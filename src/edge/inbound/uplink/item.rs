//! Audio that a client puts into an item of the conversation. The audio is decoded and resampled to 16 kHz here, a
//! frame at a time as there is room. So the audio neither disturbs the client's stream nor holds this thread up.

use super::base64::{decode_frame, frame_characters};
use crate::audio::{AudioFormat, Resampler, SampleRate, pcm};
use crate::message::{AudioFrame, AudioIn, CommitId, Epoch, FRAME_SAMPLES};
use crate::unit::Producer;

/// The audio of one item on its way to the recogniser.
#[derive(Debug)]
pub(super) struct ItemAudio {
    /// Base64, checked.
    text: String,
    /// Characters that have been decoded.
    at: usize,
    format: AudioFormat,
    resampler: Resampler,
    /// True once all samples have gone through the resampler.
    finished: bool,
    /// Samples at 16 kHz.
    ready: Vec<i16>,
    epoch: Epoch,
    commit: CommitId,
}

impl ItemAudio {
    /// Makes the audio of an item that ends with `commit`. `text` is base64 of whole samples in `format`.
    pub(super) fn new(text: String, format: AudioFormat, epoch: Epoch, commit: CommitId) -> Self {
        let resampler = Resampler::new(format.rate(), SampleRate::HZ_16K)
            .expect("rates that SampleRate names have a resampler");
        Self { text, at: 0, format, resampler, finished: false, ready: Vec::new(), epoch, commit }
    }

    /// Pushes frames as long as there is room. Returns true once all are in; else the producer is rung as soon as there
    /// is room.
    pub(super) fn feed(&mut self, audio_in: &mut Producer<AudioIn>) -> bool {
        while audio_in.has_room_or_ring(1) {
            if self.ready.len() >= FRAME_SAMPLES || (self.finished && !self.ready.is_empty()) {
                let frame = AudioFrame::cut(&mut self.ready, SampleRate::HZ_16K);
                audio_in.push(self.epoch, AudioIn::ItemAudio(frame)).expect("there is room");
            } else if self.at < self.text.len() {
                self.decode();
            } else if !self.finished {
                let ready = &mut self.ready;
                self.resampler.finish(&mut |samples: &[f32]| pcm::append_i16(ready, samples));
                self.finished = true;
            } else {
                audio_in.push(self.epoch, AudioIn::ItemEnd(self.commit)).expect("there is room");
                return true;
            }
        }
        false
    }

    /// Decodes and resamples one frame of the client's audio.
    fn decode(&mut self) {
        let end = (self.at + frame_characters(self.format)).min(self.text.len());
        let piece = &self.text.as_bytes()[self.at..end];
        self.at = end;
        let mut samples = [0_i16; FRAME_SAMPLES];
        let len = decode_frame(piece, self.format, &mut samples).expect("checked as a whole");
        let ready = &mut self.ready;
        self.resampler.push(&samples[..len], &mut |samples: &[f32]| pcm::append_i16(ready, samples));
    }
}
