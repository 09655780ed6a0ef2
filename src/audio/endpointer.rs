//! Beginning and end of speech, from the probabilities of detector windows. Time is counted in windows.

/// Windows that decide on an onset.
pub const ONSET_WINDOWS: usize = 4;

/// Voiced windows among the last [`ONSET_WINDOWS`] that make an onset: 96 ms of speech. A click or a breath is shorter.
const ONSET_VOICED: u32 = 3;

/// Speech goes on while the probability stays above the threshold less this. Source: silero-vad 6.2.3,
/// `VADIterator` (`threshold - 0.15`).
const HYSTERESIS: f32 = 0.15;

/// A change that a window has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Speech began `windows_ago` windows before the end of this one (this one included).
    Started {
        /// Number of windows, `1..=ONSET_WINDOWS`.
        windows_ago: u32,
    },
    /// Speech has ended with this window.
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// One bit per window, the newest lowest; set if the window was voiced.
    Silence { voiced: u8 },
    /// Windows without speech since the last voiced one.
    Speech { silent: u32 },
}

/// Hysteresis, minimum speech and silence end over the probabilities of one stream.
#[derive(Clone, Debug)]
pub struct Endpointer(Activity);

impl Endpointer {
    /// Creates an endpointer in silence.
    #[must_use]
    pub const fn new() -> Self {
        Self(Activity::Silence { voiced: 0 })
    }

    /// Returns to silence; an open utterance is dropped.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// Takes the probability of the next window. `threshold` is in `0.0..=1.0`; `silence_windows` end the utterance.
    pub fn window(&mut self, probability: f32, threshold: f32, silence_windows: u32) -> Option<Transition> {
        match &mut self.0 {
            Activity::Silence { voiced } => {
                *voiced = ((*voiced << 1) | u8::from(probability >= threshold)) & ((1 << ONSET_WINDOWS) - 1);
                if voiced.count_ones() < ONSET_VOICED {
                    return None;
                }
                let windows_ago = u8::BITS - voiced.leading_zeros();
                self.0 = Activity::Speech { silent: 0 };
                Some(Transition::Started { windows_ago })
            }
            Activity::Speech { silent } => {
                if probability >= threshold {
                    *silent = 0;
                } else if probability < threshold - HYSTERESIS || *silent > 0 {
                    *silent += 1;
                }
                if *silent < silence_windows.max(1) {
                    return None;
                }
                self.reset();
                Some(Transition::Stopped)
            }
        }
    }
}

impl Default for Endpointer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(probabilities: &[f32], silence_windows: u32) -> Vec<(usize, Transition)> {
        let mut endpointer = Endpointer::new();
        let step = |(at, p): (usize, &f32)| endpointer.window(*p, 0.5, silence_windows).map(|t| (at, t));
        probabilities.iter().enumerate().filter_map(step).collect()
    }

    #[test]
    fn a_click_is_no_speech_and_an_onset_is_dated_back() {
        assert_eq!(run(&[0.9, 0.9, 0.1, 0.1, 0.1, 0.9, 0.1, 0.9], 3), []);
        assert_eq!(run(&[0.1, 0.9, 0.2, 0.9, 0.9], 3), [(4, Transition::Started { windows_ago: 4 })]);
        assert_eq!(run(&[0.1, 0.9, 0.9, 0.9], 3), [(3, Transition::Started { windows_ago: 3 })]);
    }

    #[test]
    fn speech_survives_a_dip_and_ends_after_silence() {
        let probabilities = [0.9, 0.9, 0.9, 0.4, 0.4, 0.4, 0.4, 0.1, 0.6, 0.1, 0.4, 0.1];
        assert_eq!(
            run(&probabilities, 3),
            [(2, Transition::Started { windows_ago: 3 }), (11, Transition::Stopped)]
        );
    }
}
