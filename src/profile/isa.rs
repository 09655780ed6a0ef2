//! Extensions of the instruction set, which distinguish processors of one name.

use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};
use serde::{Deserialize, Serialize};

/// An extension of the instruction set for which ONNX Runtime has code of its own, by its name in
/// `/proc/cpuinfo`. Other extensions do not change the speed of the models.
///
/// # Source
/// The features that ONNX Runtime queries when it starts: `onnxruntime/core/mlas/lib/platform.cpp`,
/// 0112bef2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Isa {
    /// x86: vectors of 256 bits.
    Avx2,
    /// x86: 8-bit dot products in vectors of 256 bits.
    AvxVnni,
    /// x86: vectors of 512 bits.
    Avx512f,
    /// x86: 8 and 16-bit elements in vectors of 512 bits.
    Avx512bw,
    /// x86: 8-bit dot products in vectors of 512 bits.
    Avx512Vnni,
    /// x86: products of 8-bit matrices.
    AmxInt8,
    /// Arm: 8-bit dot products.
    Asimddp,
    /// Arm: products of 8-bit matrices.
    I8mm,
    /// Arm: 16-bit brain floats.
    Bf16,
    /// Arm: vectors of a width that depends on the processor.
    Sve,
}

impl Isa {
    /// Returns the extension of this name; `None` for one that does not matter here.
    pub(super) fn named(name: &str) -> Option<Self> {
        let name: StrDeserializer<'_, Error> = name.into_deserializer();
        Self::deserialize(name).ok()
    }
}
