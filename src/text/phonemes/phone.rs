//! The sounds of American English as the dictionary writes them.

/// One phoneme of ARPAbet. The names are ARPAbet's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[rustfmt::skip]
pub(super) enum Phone {
    // Vowels: odd, at, hut, ought, cow, hide, Ed, hurt, ate, it, eat, oat, toy, hood, two.
    AA, AE, AH, AO, AW, AY, EH, ER, EY, IH, IY, OW, OY, UH, UW,
    // Consonants.
    B, CH, D, DH, F, G, HH, JH, K, L, M, N, NG, P, R, S, SH, T, TH, V, W, Y, Z, ZH,
}

impl Phone {
    #[rustfmt::skip]
    const ALL: [(Self, &'static str); 39] = [
        (Self::AA, "AA"), (Self::AE, "AE"), (Self::AH, "AH"), (Self::AO, "AO"), (Self::AW, "AW"), (Self::AY, "AY"),
        (Self::EH, "EH"), (Self::ER, "ER"), (Self::EY, "EY"), (Self::IH, "IH"), (Self::IY, "IY"), (Self::OW, "OW"),
        (Self::OY, "OY"), (Self::UH, "UH"), (Self::UW, "UW"), (Self::B, "B"), (Self::CH, "CH"), (Self::D, "D"),
        (Self::DH, "DH"), (Self::F, "F"), (Self::G, "G"), (Self::HH, "HH"), (Self::JH, "JH"), (Self::K, "K"),
        (Self::L, "L"), (Self::M, "M"), (Self::N, "N"), (Self::NG, "NG"), (Self::P, "P"), (Self::R, "R"),
        (Self::S, "S"), (Self::SH, "SH"), (Self::T, "T"), (Self::TH, "TH"), (Self::V, "V"), (Self::W, "W"),
        (Self::Y, "Y"), (Self::Z, "Z"), (Self::ZH, "ZH"),
    ];

    /// Returns true if the phoneme is the core of a syllable.
    pub(super) fn is_vowel(self) -> bool {
        self <= Self::UW
    }

    /// Returns true if the phoneme is spoken without the vocal cords.
    pub(super) fn is_voiceless(self) -> bool {
        matches!(
            self,
            Self::P | Self::T | Self::K | Self::F | Self::TH | Self::S | Self::SH | Self::CH | Self::HH
        )
    }

    /// Returns true if a plural s behind the phoneme needs a vowel before it.
    pub(super) fn is_sibilant(self) -> bool {
        matches!(self, Self::S | Self::Z | Self::SH | Self::ZH | Self::CH | Self::JH)
    }
}

/// Stress of a vowel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Stress {
    None,
    Secondary,
    Primary,
}

/// A phoneme in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Sound {
    pub(super) phone: Phone,
    /// [`Stress::None`] for consonants.
    pub(super) stress: Stress,
}

impl Sound {
    /// Creates a consonant or an unstressed vowel.
    pub(super) const fn plain(phone: Phone) -> Self {
        Self { phone, stress: Stress::None }
    }

    pub(super) fn is_vowel(self) -> bool {
        self.phone.is_vowel()
    }

    pub(super) fn is_stressed(self) -> bool {
        self.stress != Stress::None
    }

    /// Parses `AH0`, `AH1` or `T`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (name, stress) = match text.as_bytes().last()? {
            b'0' => (&text[..text.len() - 1], Stress::None),
            b'1' => (&text[..text.len() - 1], Stress::Primary),
            b'2' => (&text[..text.len() - 1], Stress::Secondary),
            _ => (text, Stress::None),
        };
        let (phone, _) = Phone::ALL.into_iter().find(|(_, known)| *known == name)?;
        Some(Self { phone, stress })
    }

    /// Writes the form that [`Self::parse`] reads.
    #[cfg(test)]
    pub(super) fn write(self, out: &mut String) {
        out.push_str(Phone::ALL[self.phone as usize].1);
        if self.is_vowel() {
            out.push(match self.stress {
                Stress::None => '0',
                Stress::Primary => '1',
                Stress::Secondary => '2',
            });
        }
    }
}

/// Appends the sounds of `arpabet`, which are separated by spaces.
///
/// # Panics
/// If a name is unknown: the tables are ours, and a test reads all of them.
pub(super) fn append(arpabet: &str, out: &mut Vec<Sound>) {
    out.extend(
        arpabet.split_ascii_whitespace().map(|name| Sound::parse(name).expect("a phoneme of ARPAbet")),
    );
}
