//! All units, in one allocation made at start.

use super::bell::{Bell, Ringer};
use super::edge_bell::{EdgeBell, EdgeSignal};
use super::free::FreeUnits;
use super::generation::GenerationCounter;
use super::port::{EdgePort, Ends, LlmPort, SttPort, TtsPort, VadPort};
use super::ring::ring;
use super::slot::{SlotState, SlotWord};
use super::stage_bell::StageBell;
use crate::audio::SampleRate;
use crate::limits;
use crate::message::{Epoch, Stamp, UnitId};
use crate::sync::{AtomicU64, Ordering, PortCell};

/// What a unit counts, for `/v1/pool` and the metrics. Relaxed: each number stands for itself.
#[derive(Debug, Default)]
pub struct UnitCounters {
    /// Claims so far.
    pub claims: AtomicU64,
    /// Items that were dropped because they were stale.
    pub stale_items: AtomicU64,
    /// Panics of a stage that this unit was in.
    pub stage_panics: AtomicU64,
}

/// Sums of [`UnitCounters`] over the slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterTotals {
    /// Claims so far.
    pub claims: u64,
    /// Items that were dropped because they were stale.
    pub stale_items: u64,
    /// Panics of a stage, per unit that was in it.
    pub stage_panics: u64,
}

impl UnitCounters {
    /// Adds one to `counter`.
    pub fn count(counter: &AtomicU64) {
        // ORDERING: Relaxed: a statistic, publishes nothing.
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// One pre-built pipeline.
#[derive(Debug)]
pub struct Unit {
    /// Who holds it.
    pub slot: SlotWord,
    /// What is stale.
    pub generation: GenerationCounter,
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
    /// What is counted.
    pub counters: UnitCounters,
}

impl Unit {
    /// Whether something on the answer's way (prompt, text, audio) is over: cancelled, or its session ended.
    #[must_use]
    pub fn is_stale(&self, stamp: Stamp) -> bool {
        self.generation.is_stale(stamp.generation)
    }

    /// Whether something on the user's way (audio, utterance, transcript) is over: its session ended. A cancelled answer
    /// does not take the user's words with it.
    #[must_use]
    pub fn is_over(&self, epoch: Epoch) -> bool {
        !self.slot.is_claimed_by(epoch)
    }
}

/// The doorbells of all stages and of the edge.
#[derive(Clone, Copy, Debug)]
pub struct Bells {
    /// VAD's workers.
    pub vad: &'static StageBell,
    /// STT.
    pub stt: Bell,
    /// TTS.
    pub tts: Bell,
    /// The edge's dispatcher.
    pub edge: &'static EdgeBell,
}

/// All units. Lives as long as the process: it is built once and leaked, so that leases and workers need no count.
#[derive(Debug)]
pub struct UnitSlab {
    units: Box<[Unit]>,
    pub(super) free: FreeUnits,
    /// Whom to wake.
    pub bells: Bells,
}

impl UnitSlab {
    /// Builds `units` units, all free, for voices of `voice_rate`.
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

    /// The unit.
    #[must_use]
    pub fn unit(&self, unit: UnitId) -> &Unit {
        &self.units[unit.index()]
    }

    /// All units, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (UnitId, &Unit)> {
        self.units
            .iter()
            .enumerate()
            .map(|(index, unit)| (UnitId::new(u16::try_from(index).expect("UNITS_MAX fits u16")), unit))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// How many are in `state` now.
    #[must_use]
    pub fn count(&self, state: SlotState) -> usize {
        self.units.iter().filter(|unit| unit.slot.load().0 == state).count()
    }

    /// What all units have counted so far.
    #[must_use]
    pub fn totals(&self) -> CounterTotals {
        let mut totals = CounterTotals::default();
        for unit in &self.units {
            // ORDERING: Relaxed: statistics, publish nothing.
            totals.claims += unit.counters.claims.load(Ordering::Relaxed);
            totals.stale_items += unit.counters.stale_items.load(Ordering::Relaxed);
            totals.stage_panics += unit.counters.stage_panics.load(Ordering::Relaxed);
        }
        totals
    }

    /// Takes a unit whose drain takes too long out of sight. False when the drain is over.
    pub(super) fn quarantine(&self, unit: UnitId, epoch: Epoch) -> bool {
        self.unit(unit).slot.quarantine(epoch)
    }

    /// Makes a drained unit claimable. Only the drainer calls it, after it has let go of the edge port.
    pub(super) fn finish_drain(&self, unit: UnitId, epoch: Epoch) -> bool {
        let slot = &self.unit(unit).slot;
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
    let ends = Ends {
        audio_in: ring(limits::AUDIO_IN_ITEMS, session, vad),
        speech: ring(limits::SPEECH_ITEMS, vad, stt),
        vad_events: ring(limits::VAD_EVENT_ITEMS, vad, session),
        stt_events: ring(limits::STT_EVENT_ITEMS, stt, session),
        text_prompts: ring(limits::TEXT_PROMPT_ITEMS, session, llm),
        clauses: ring(limits::CLAUSE_ITEMS, llm, tts),
        audio_out: ring(limits::AUDIO_OUT_ITEMS, tts, session),
    };
    let (edge, vad, stt, llm, tts) = ends.into_ports(voice_rate);
    Unit {
        slot: SlotWord::new(),
        generation: GenerationCounter::new(),
        edge: PortCell::new(edge),
        vad: PortCell::new(vad),
        stt: PortCell::new(stt),
        llm: PortCell::new(llm),
        tts: PortCell::new(tts),
        counters: UnitCounters::default(),
    }
}
