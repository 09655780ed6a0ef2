//! All units, in one allocation made at start.

use triple_buffer::triple_buffer;

use super::bell::{Bell, Ringer};
use super::edge_bell::{EdgeBell, EdgeSignal};
use super::edge_port::EdgePort;
use super::free::FreeUnits;
use super::llm_port::LlmPort;
use super::ring::ring;
use super::slot::SlotState;
use super::stage_bell::StageBell;
use super::status::{CounterTotals, UnitStatus};
use super::stt_port::SttPort;
use super::tts_port::TtsPort;
use super::vad_port::VadPort;
use crate::audio::SampleRate;
use crate::limits;
use crate::message::{Epoch, Spent, TtsSettings, UnitId};
use crate::sync::PortCell;

/// One pre-built pipeline.
#[derive(Debug)]
pub struct Unit {
    /// Words that every thread reads.
    pub status: UnitStatus,
    /// The edge's ends.
    pub edge: PortCell<EdgePort>,
    /// VAD's ends and state.
    pub vad: PortCell<VadPort>,
    /// STT's ends and state.
    pub stt: PortCell<SttPort>,
    /// The language model task's ends.
    pub llm: PortCell<LlmPort>,
    /// TTS's ends and state.
    pub tts: PortCell<TtsPort>,
}

/// The doorbells of all stages and of the edge.
#[derive(Clone, Copy, Debug)]
pub struct Bells {
    /// The bell of VAD's workers.
    pub vad: &'static StageBell,
    /// The bell of STT.
    pub stt: Bell,
    /// The bell of TTS.
    pub tts: Bell,
    /// The bell of the edge's dispatcher.
    pub edge: &'static EdgeBell,
}

/// All units. The slab lives as long as the process: it is built once and leaked, so that leases and workers need no
/// reference count.
#[derive(Debug)]
pub struct UnitSlab {
    units: Box<[Unit]>,
    pub(super) free: FreeUnits,
    /// The bells of all units' stages.
    pub bells: Bells,
}

impl UnitSlab {
    /// Builds `units` free units, for voices of `voice_rate`.
    #[must_use]
    pub fn leak(units: usize, bells: Bells, voice_rate: SampleRate) -> &'static Self {
        let build = |index| {
            let unit = UnitId::new(u16::try_from(index).expect("UNITS_MAX fits u16"));
            build_unit(unit, bells, voice_rate)
        };
        Box::leak(Box::new(Self {
            units: (0..units).map(build).collect(),
            free: FreeUnits::full(units),
            bells,
        }))
    }

    /// Returns the unit.
    #[must_use]
    pub fn unit(&self, unit: UnitId) -> &Unit {
        &self.units[unit.index()]
    }

    /// Iterates over all units, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (UnitId, &Unit)> {
        self.units
            .iter()
            .enumerate()
            .map(|(index, unit)| (UnitId::new(u16::try_from(index).expect("UNITS_MAX fits u16")), unit))
    }

    /// Returns the number of units.
    #[must_use]
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Returns true if the slab has no unit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Returns the number of units that are in `state` now.
    #[must_use]
    pub fn count(&self, state: SlotState) -> usize {
        self.units.iter().filter(|unit| unit.status.slot.load().0 == state).count()
    }

    /// Returns the sums of all units' counters.
    #[must_use]
    pub fn totals(&self) -> CounterTotals {
        let mut totals = CounterTotals::default();
        self.units.iter().for_each(|unit| totals.add(&unit.status.counters));
        totals
    }

    /// Puts a unit whose drain takes too long into quarantine. Returns false if the drain is over.
    pub(super) fn quarantine(&self, unit: UnitId, epoch: Epoch) -> bool {
        self.unit(unit).status.slot.quarantine(epoch)
    }

    /// Makes a drained unit claimable. Only the drain calls it, after it has dropped the borrow of the edge port.
    pub(super) fn finish_drain(&self, unit: UnitId, epoch: Epoch) -> bool {
        let slot = &self.unit(unit).status.slot;
        let finished = slot.finish_drain(epoch) || slot.recover(epoch);
        if finished {
            self.free.put(unit.index());
        }
        finished
    }
}

fn build_unit(unit: UnitId, bells: Bells, voice_rate: SampleRate) -> Unit {
    let (vad, stt, tts) = (Ringer::Stage(bells.vad, unit), bells.stt.ringer(unit), bells.tts.ringer(unit));
    let session = Ringer::Edge(bells.edge, EdgeSignal::Session, unit);
    let llm = Ringer::Edge(bells.edge, EdgeSignal::Llm, unit);
    // The user's arm.
    let (edge_audio, audio_in) = ring(limits::AUDIO_IN_ITEMS, session, vad);
    let (vad_speech, speech) = ring(limits::SPEECH_ITEMS, vad, stt);
    let (vad_text, vad_events) = ring(limits::VAD_EVENT_ITEMS, vad, session);
    let (stt_text, stt_events) = ring(limits::STT_EVENT_ITEMS, stt, session);
    // The answer's arm.
    let (edge_prompts, text_prompts) = ring(limits::TEXT_PROMPT_ITEMS, session, llm);
    let (llm_answer, answer_in) = ring(limits::ANSWER_IN_ITEMS, llm, tts);
    let (tts_answer, answer_out) = ring(limits::ANSWER_OUT_ITEMS, tts, session);
    let (tts_settings, settings) = triple_buffer(&TtsSettings::default());
    let (llm_spent, spent) = triple_buffer(&Spent::default());
    Unit {
        status: UnitStatus::default(),
        edge: PortCell::new(EdgePort {
            audio_in: edge_audio,
            text_prompts: edge_prompts,
            vad_events,
            stt_events,
            answer_out,
            tts_settings,
            spent,
        }),
        vad: PortCell::new(VadPort::new(audio_in, vad_speech, vad_text)),
        stt: PortCell::new(SttPort::new(speech, stt_text)),
        llm: PortCell::new(LlmPort { text_prompts, answer_in: llm_answer, spent: llm_spent }),
        tts: PortCell::new(TtsPort::new(answer_in, tts_answer, settings, voice_rate)),
    }
}
