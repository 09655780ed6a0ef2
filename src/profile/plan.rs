//! The choices for a machine, and the rules behind `"auto"`.

use serde::{Deserialize, Serialize};

use super::count::{Count, Whole};
use crate::limits::{LLM_SLOTS_MAX, UNITS_MAX, WORKERS_MAX};

/// The choices of a profile, as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Units in the slab: conversations at a time. Memory grows by one unit's rings and ports each.
    /// Auto: 4 per core, at most 256.
    pub units: Count<UNITS_MAX>,
    /// Threads of the edge's runtime. Auto: a quarter of the cores, at most 8.
    pub edge_threads: Count<64>,
    /// Threads of the voice activity stage. Auto: an eighth of the cores, at most 8.
    pub vad_workers: Count<WORKERS_MAX>,
    /// Windows of different units that one call of the detector may take together. Larger batches cost less
    /// per window and delay the first of them.
    pub vad_batch: Whole<1, 64>,
    /// Threads of the recognition stage, each with its own model instance. Auto: a quarter of the cores, at
    /// most 16.
    pub stt_workers: Count<WORKERS_MAX>,
    /// Threads of the synthesis stage, each with its own model instance. Auto: a quarter of the cores, at
    /// most 16.
    pub tts_workers: Count<WORKERS_MAX>,
    /// Threads of the built-in language model. Auto: half of the cores, at least 2 if there are 2, at most
    /// 16.
    pub llm_threads: Count<64>,
    /// Answers that the built-in language model makes at a time. Auto: one per unit, at most 16.
    pub llm_slots: Count<LLM_SLOTS_MAX>,
    /// Threads inside one call of ONNX Runtime. More than 1 shortens a call and costs throughput.
    pub onnx_intra_op: Whole<1, 64>,
    /// Device on which ONNX Runtime computes.
    execution_provider: ExecutionProvider,
    /// Niceness of the stage threads.
    pub nice: Nice,
}

/// Device on which ONNX Runtime computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ExecutionProvider {
    /// The processor, on all systems.
    Cpu,
}

/// Niceness of each kind of thread, `0..=19`: when cores are scarce, threads with lower values go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nice {
    /// Threads of the edge.
    pub edge: Whole<0, 19>,
    /// Workers of voice activity detection.
    pub vad: Whole<0, 19>,
    /// Workers of recognition.
    pub stt: Whole<0, 19>,
    /// Threads of the built-in language model.
    pub llm: Whole<0, 19>,
    /// Workers of synthesis.
    pub tts: Whole<0, 19>,
}

/// The choices in numbers, for a certain number of cores. All are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// See [`Plan::units`].
    pub units: u16,
    /// See [`Plan::edge_threads`].
    pub edge_threads: u16,
    /// See [`Plan::vad_workers`].
    pub vad_workers: u16,
    /// See [`Plan::stt_workers`].
    pub stt_workers: u16,
    /// See [`Plan::tts_workers`].
    pub tts_workers: u16,
    /// See [`Plan::llm_threads`].
    pub llm_threads: u16,
    /// See [`Plan::llm_slots`].
    pub llm_slots: u16,
}

impl Plan {
    /// Returns the numbers for `cores` logical processors; each field of [`Plan`] documents its rule.
    ///
    /// The rules are estimates, not measurements of whole conversations. The default models need, for one
    /// conversation at a time of which the machine speaks half, about 6 % of a core for synthesis (real-time
    /// factor 0.12), 5 % for the language model, 3 % for recognition, 1 % for voice activity and end of turn
    /// together. With 4 units per core there is room for coincidences.
    #[must_use]
    pub fn counts(&self, cores: u16) -> Counts {
        let cores = cores.max(1);
        let share = |parts: u16, most: u16| (cores / parts).clamp(1, most);
        let units = self.units.or(cores.saturating_mul(4).min(256));
        Counts {
            units,
            edge_threads: self.edge_threads.or(share(4, 8)),
            vad_workers: self.vad_workers.or(share(8, 8)),
            stt_workers: self.stt_workers.or(share(4, 16)),
            tts_workers: self.tts_workers.or(share(4, 16)),
            llm_threads: self.llm_threads.or(share(2, 16).max(cores.min(2))),
            llm_slots: self.llm_slots.or(units.min(16)),
        }
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { units, edge_threads, vad_workers, stt_workers, tts_workers, llm_threads, llm_slots } =
            self;
        write!(
            f,
            "{units} units; threads: edge {edge_threads}, vad {vad_workers}, stt {stt_workers}, tts \
             {tts_workers}, llm {llm_threads}; llm slots {llm_slots}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::choice::embedded;
    use super::*;

    fn generic() -> Plan {
        embedded().remove(0).plan
    }

    #[test]
    fn auto_follows_its_rules() {
        let counts = |units, edge_threads, vad_workers, workers, llm_threads, llm_slots| Counts {
            units,
            edge_threads,
            vad_workers,
            stt_workers: workers,
            tts_workers: workers,
            llm_threads,
            llm_slots,
        };
        assert_eq!(generic().counts(0), generic().counts(1), "no machine has no core");
        assert_eq!(generic().counts(1), counts(4, 1, 1, 1, 1, 4));
        assert_eq!(generic().counts(2), counts(8, 1, 1, 1, 2, 8));
        assert_eq!(generic().counts(3), counts(12, 1, 1, 1, 2, 12));
        assert_eq!(generic().counts(16), counts(64, 4, 2, 4, 8, 16));
        assert_eq!(generic().counts(u16::MAX), counts(256, 8, 8, 16, 16, 16));
    }

    #[test]
    fn fixed_counts_do_not_depend_on_the_cores() {
        let mut plan = generic();
        plan.units = Count::Fixed(Whole::new(3).expect("in range"));
        plan.llm_threads = Count::Fixed(Whole::new(7).expect("in range"));
        for cores in [1, 64] {
            let counts = plan.counts(cores);
            assert_eq!(
                (counts.units, counts.llm_threads, counts.llm_slots),
                (3, 7, 3),
                "slots follow the units"
            );
        }
    }
}
