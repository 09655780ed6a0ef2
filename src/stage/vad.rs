//! Voice activity detection: finds the start and end of the user's speech.
//!
//! *Thread:* `vad-<n>`. *Never:* blocks, locks, allocates. *In:* `audio_in`. *Out:* `speech`, `text_events`. *Budget:*
//! `endpoint_wait_ms_p99` of the hw-profile. Windows of different units go through the network together.

use super::{CallClass, Deadlines, Stage, Urgency};
use crate::audio::{SampleRate, Transition, pcm};
use crate::limits::{
    COMMIT_MS_MIN, HISTORY_WINDOWS, PREFIX_MS_MAX, SPEECH_BURST, UTTERANCE_SAMPLES_MAX, VAD_EVENT_BURST,
};
use crate::message::{
    AudioFrame, AudioIn, CommitId, Envelope, Moment, SPEECH_FRAME_SAMPLES, SpeechFrame, SpeechItem, UnitId,
    UtteranceId, VadEvent, VadMode,
};
use crate::model::{DETECTOR_WINDOW, VadModel};
use crate::rt::alloc::foreign;
use crate::sync::PortGuard;
use crate::unit::{ItemHearing, OpenUtterance, UnitSlab, UnitStatus, VadPort, VadState};

const _: () = assert!(DETECTOR_WINDOW == SPEECH_FRAME_SAMPLES, "a window is a speech frame");

/// Samples of one window, 16 kHz.
const WINDOW: u64 = SPEECH_FRAME_SAMPLES as u64;

/// Milliseconds of one window.
const WINDOW_MS: u32 = 32;

/// Most windows of one unit per call, so that a client that floods does not keep the others waiting.
const ROUNDS_MAX: usize = 4;

/// The VAD stage.
pub struct VadStage {
    model: Box<dyn VadModel>,
    /// Ports of the units at hand; empty between calls.
    ports: Vec<(UnitId, PortGuard<'static, VadPort>)>,
    /// Index in `ports` of each row of the network.
    rows: Vec<usize>,
}

impl std::fmt::Debug for VadStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VadStage").finish_non_exhaustive()
    }
}

impl VadStage {
    /// Creates a worker with its own instance of the network.
    #[must_use]
    pub fn new(model: Box<dyn VadModel>) -> Self {
        let rows = model.rows_max();
        Self { model, ports: Vec::with_capacity(rows), rows: Vec::with_capacity(rows) }
    }

    /// Takes one window of every unit that has one. Returns false if no unit had one.
    fn round(&mut self, slab: &'static UnitSlab) -> bool {
        let mut any = false;
        self.rows.clear();
        for (index, (unit, port)) in self.ports.iter_mut().enumerate() {
            match next_window(&slab.unit(*unit).status, port) {
                Next::Nothing => {}
                Next::Unheard => {
                    any = true;
                    take_window(port, None);
                }
                Next::Window => {
                    any = true;
                    let window = window_of(port);
                    self.model.load(self.rows.len(), &port.state.stream, &window);
                    self.rows.push(index);
                }
            }
        }
        if self.rows.is_empty() {
            return any;
        }
        // A failed run counts as silence, so that the stream goes on without false speech.
        let heard = foreign(|| self.model.run(self.rows.len())).is_ok();
        for (row, index) in self.rows.iter().enumerate() {
            let port = &mut self.ports[*index].1;
            let probability = if heard { self.model.store(row, &mut port.state.stream) } else { 0.0 };
            take_window(port, Some(probability));
        }
        true
    }
}

impl Stage for VadStage {
    fn candidates_max(&self) -> usize {
        self.model.rows_max()
    }

    fn rows_max(&self) -> usize {
        self.model.rows_max()
    }

    fn prepare(
        &mut self,
        _slab: &'static UnitSlab,
        _unit: UnitId,
        now: Moment,
        _deadlines: &mut Deadlines,
    ) -> Option<Urgency> {
        Some(Urgency::new(CallClass::Window, now))
    }

    fn call(&mut self, slab: &'static UnitSlab, units: &[UnitId]) {
        self.ports.extend(units.iter().map(|unit| (*unit, slab.unit(*unit).vad.borrow())));
        let busy = (0..ROUNDS_MAX).all(|_| self.round(slab));
        self.ports.clear();
        if busy {
            units.iter().for_each(|unit| slab.bells.vad.ring(*unit));
        }
    }

    fn recover(&mut self, slab: &'static UnitSlab, unit: UnitId) {
        self.ports.clear();
        // An open utterance is committed with its audio so far, so that its end comes. The caller loses the window at
        // hand.
        let port = &mut *slab.unit(unit).vad.borrow();
        if port.state.open.is_some() && port.speech.room() > 0 && port.events.room() >= VAD_EVENT_BURST {
            close(port, None);
        }
        port.state.open = None;
        port.state.stream.reset();
        port.state.endpointer.reset();
        forget_pending(&mut port.state);
        slab.bells.vad.ring(unit);
    }
}

enum Next {
    /// No window is complete, or a ring is full.
    Nothing,
    /// A window for the network.
    Window,
    /// A window that needs no network, as the client commits.
    Unheard,
}

/// Takes items off `audio_in` until a window is complete.
fn next_window(unit: &UnitStatus, port: &mut VadPort) -> Next {
    loop {
        if !port.speech.has_room_or_ring(HISTORY_WINDOWS + SPEECH_BURST)
            || !port.events.has_room_or_ring(VAD_EVENT_BURST)
        {
            return Next::Nothing;
        }
        if port.state.pending.len() >= SPEECH_FRAME_SAMPLES {
            return match port.state.mode {
                VadMode::Off => Next::Unheard,
                VadMode::Server { .. } | VadMode::Semantic { .. } => Next::Window,
            };
        }
        match port.audio_in.next_live(unit) {
            None => return Next::Nothing,
            Some(Envelope::SessionEnd(epoch)) => {
                port.state.reset();
                port.speech.push_end(epoch);
            }
            Some(Envelope::Item { stamp, item }) => {
                port.state.epoch = stamp;
                take_item(port, item);
            }
        }
    }
}

fn take_item(port: &mut VadPort, item: AudioIn) {
    match item {
        AudioIn::Audio(frame) => {
            let state = &mut port.state;
            let pending = &mut state.pending;
            if state.resampler.from() != frame.rate {
                state.resampler.finish(&mut |samples| pcm::append_i16(pending, samples));
                let set = state.resampler.set_rates(frame.rate, SampleRate::HZ_16K);
                debug_assert!(set.is_ok(), "the edge accepts only rates that SampleRate names");
            }
            state.resampler.push(frame.used(), &mut |samples| pcm::append_i16(pending, samples));
        }
        AudioIn::Commit(commit) => commit_by_client(port, commit),
        AudioIn::Settings(settings) => follow_settings(port, settings.mode),
        AudioIn::Hints(hints) => push_speech(port, SpeechItem::Hints(hints)),
        AudioIn::ItemAudio(frame) => hear_item(port, &frame),
        AudioIn::ItemEnd(commit) => end_item(port, commit),
        AudioIn::Clear(commit) => clear(port, commit),
    }
}

/// Applies new settings at their place in the audio, and ends an utterance that the change leaves without an end.
fn follow_settings(port: &mut VadPort, mode: VadMode) {
    port.state.mode = mode;
    if let Some(open) = port.state.open {
        match mode {
            VadMode::Off => port.state.endpointer.reset(),
            VadMode::Server { .. } | VadMode::Semantic { .. } if !open.announced => {
                // Collected for a commit that will not come: detection begins here.
                push_speech(port, SpeechItem::Abort(open.utterance));
                port.state.open = None;
                port.state.windows = 0;
            }
            VadMode::Server { .. } | VadMode::Semantic { .. } => {}
        }
    }
}

fn window_of(port: &VadPort) -> [i16; SPEECH_FRAME_SAMPLES] {
    port.state.pending[..SPEECH_FRAME_SAMPLES].try_into().expect("a window is pending")
}

/// Moves the pending window into the history and follows its probability; `None`: the client commits.
fn take_window(port: &mut VadPort, probability: Option<f32>) {
    let window = window_of(port);
    let state = &mut port.state;
    state.pending.drain(..SPEECH_FRAME_SAMPLES);
    state.history[slot_of(state.windows)] = window;
    state.windows += 1;
    state.position += WINDOW;

    let (threshold, prefix_ms, silence_ms) = match port.state.mode {
        VadMode::Server { threshold, prefix_ms, silence_ms } => (threshold, prefix_ms, silence_ms),
        VadMode::Semantic { .. } => (0.5, 300, 500),
        VadMode::Off => {
            if port.state.open.is_none() {
                let start = port.state.position - WINDOW;
                open(port, start, false);
            } else {
                push_frame(port, &window);
            }
            return;
        }
    };
    if port.state.open.is_some() {
        push_frame(port, &window);
    }
    let Some(probability) = probability else { return };
    let silence_windows = silence_ms.div_ceil(WINDOW_MS);
    match port.state.endpointer.window(probability, threshold, silence_windows) {
        Some(Transition::Started { windows_ago }) => {
            let onset = port.state.position - u64::from(windows_ago) * WINDOW;
            let prefix = SampleRate::HZ_16K.samples_in(prefix_ms.min(PREFIX_MS_MAX));
            let start = onset.saturating_sub(prefix).max(oldest(port));
            open(port, start, true);
        }
        Some(Transition::Stopped) => close(port, None),
        None => {
            let too_long = |open: OpenUtterance| {
                port.state.position - open.start + WINDOW > UTTERANCE_SAMPLES_MAX as u64
            };
            if port.state.open.is_some_and(too_long) {
                // Speech without a pause is committed here. It goes on as the next utterance without the loss of a
                // sample.
                close(port, None);
                let start = port.state.position;
                open(port, start, true);
            }
        }
    }
}

fn slot_of(window: u64) -> usize {
    usize::try_from(window % HISTORY_WINDOWS as u64).expect("less than HISTORY_WINDOWS")
}

/// Returns the first sample that the history holds.
fn oldest(port: &VadPort) -> u64 {
    port.state.position - port.state.windows.min(HISTORY_WINDOWS as u64) * WINDOW
}

/// Begins an utterance at sample `start` and sends the part that the history holds.
fn open(port: &mut VadPort, start: u64, announced: bool) {
    let utterance = UtteranceId(port.state.next_utterance);
    port.state.next_utterance += 1;
    port.state.open = Some(OpenUtterance { utterance, start, announced });
    if announced {
        let start_ms = SampleRate::HZ_16K.millis_of(start);
        push_event(port, VadEvent::SpeechStarted { utterance, start_ms });
    }
    push_speech(port, SpeechItem::Start(utterance));
    let back = port.state.position - start;
    let windows = back.div_ceil(WINDOW);
    for n in (port.state.windows - windows)..port.state.windows {
        let window = port.state.history[slot_of(n)];
        let end = port.state.position - (port.state.windows - n - 1) * WINDOW;
        let skip = usize::try_from(start.saturating_sub(end - WINDOW)).expect("less than a window");
        push_frame(port, &window[skip..]);
    }
}

/// Ends the open utterance here. `commit` is the client's commit; `None`: VAD ends the utterance.
fn close(port: &mut VadPort, commit: Option<CommitId>) {
    let open = port.state.open.take().expect("an utterance is open");
    let utterance = open.utterance;
    if commit.is_none() {
        let end_ms = SampleRate::HZ_16K.millis_of(port.state.position);
        push_event(port, VadEvent::SpeechStopped { utterance, end_ms });
    }
    let audio_ms = SampleRate::HZ_16K.millis_of(port.state.position - open.start);
    push_event(port, VadEvent::Committed { utterance, commit, audio_ms });
    push_speech(port, SpeechItem::End(utterance));
    // No sample is in two utterances.
    port.state.windows = 0;
}

fn commit_by_client(port: &mut VadPort, commit: CommitId) {
    let begin = port.state.open.map_or_else(|| oldest_uncommitted(port), |open| open.start);
    let end = port.state.position + port.state.pending.len() as u64 + port.state.resampler.held();
    let audio_ms = SampleRate::HZ_16K.millis_of(end - begin);
    if audio_ms < COMMIT_MS_MIN {
        push_event(port, VadEvent::CommitRefused { commit, audio_ms });
        return;
    }
    if port.state.open.is_none() {
        let start = oldest(port);
        open(port, start, false);
    }
    let state = &mut port.state;
    let pending = &mut state.pending;
    state.resampler.finish(&mut |samples| pcm::append_i16(pending, samples));
    let mut at = 0;
    while at < port.state.pending.len() {
        let mut frame = [0; SPEECH_FRAME_SAMPLES];
        let len = (port.state.pending.len() - at).min(SPEECH_FRAME_SAMPLES);
        frame[..len].copy_from_slice(&port.state.pending[at..at + len]);
        push_frame(port, &frame[..len]);
        at += len;
    }
    port.state.position += at as u64;
    port.state.pending.clear();
    port.state.endpointer.reset();
    close(port, Some(commit));
}

/// Passes the audio of an item on to STT, as an utterance that no detector has judged.
fn hear_item(port: &mut VadPort, frame: &AudioFrame) {
    let state = &mut port.state;
    let item = match state.item {
        Some(item) => item,
        None if state.open.is_some() => ItemHearing::Refused,
        None => {
            let utterance = UtteranceId(state.next_utterance);
            state.next_utterance += 1;
            push_speech(port, SpeechItem::Start(utterance));
            ItemHearing::Passed { utterance, samples: 0 }
        }
    };
    port.state.item = Some(match item {
        ItemHearing::Refused => item,
        ItemHearing::Passed { utterance, samples } => {
            push_frame(port, frame.used());
            ItemHearing::Passed { utterance, samples: samples + u64::from(frame.len) }
        }
    });
}

fn end_item(port: &mut VadPort, commit: CommitId) {
    let refused = VadEvent::CommitRefused { commit, audio_ms: 0 };
    match port.state.item.take() {
        None | Some(ItemHearing::Refused) => push_event(port, refused),
        Some(ItemHearing::Passed { utterance, samples }) => {
            let audio_ms = SampleRate::HZ_16K.millis_of(samples);
            if audio_ms < COMMIT_MS_MIN {
                push_speech(port, SpeechItem::Abort(utterance));
                push_event(port, VadEvent::CommitRefused { commit, audio_ms });
                return;
            }
            push_event(port, VadEvent::Committed { utterance, commit: Some(commit), audio_ms });
            push_speech(port, SpeechItem::End(utterance));
        }
    }
}

/// Returns the first sample after the last utterance, even if the history no longer holds it.
fn oldest_uncommitted(port: &VadPort) -> u64 {
    port.state.position - port.state.windows * WINDOW
}

fn clear(port: &mut VadPort, commit: CommitId) {
    let open = port.state.open.take();
    if let Some(open) = open {
        push_speech(port, SpeechItem::Abort(open.utterance));
    }
    port.state.endpointer.reset();
    forget_pending(&mut port.state);
    let utterance = open.filter(|open| open.announced).map(|open| open.utterance);
    push_event(port, VadEvent::Cleared { commit, utterance });
}

/// Drops the audio that is in no utterance. The position moves on by its length.
fn forget_pending(state: &mut VadState) {
    state.position += state.pending.len() as u64 + state.resampler.held();
    state.pending.clear();
    state.resampler.reset();
    state.windows = 0;
}

fn push_frame(port: &mut VadPort, samples: &[i16]) {
    let mut frame = SpeechFrame { len: 0, samples: [0; SPEECH_FRAME_SAMPLES] };
    frame.samples[..samples.len()].copy_from_slice(samples);
    frame.len = u16::try_from(samples.len()).expect("at most a window");
    push_speech(port, SpeechItem::Frame(frame));
}

fn push_speech(port: &mut VadPort, item: SpeechItem) {
    port.speech.push(port.state.epoch, item).expect("room was checked before the window was taken");
}

fn push_event(port: &mut VadPort, event: VadEvent) {
    port.events.push(port.state.epoch, event).expect("room was checked before the window was taken");
}
