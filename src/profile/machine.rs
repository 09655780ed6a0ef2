//! The properties of a machine, as a profile states them and as the system at hand shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::isa::Isa;
use crate::store::Artefact;

/// The `[machine]` section. Unknown properties are left out. Written by `antiphon profile dump`, not by
/// hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Machine {
    /// Model name of the processor; `auto` compares it.
    pub cpu_model: Option<String>,
    /// Extensions of the processor's instruction set that the models use; `auto` compares them.
    pub isa: Option<BTreeSet<Isa>>,
    /// Physical cores.
    pub cores_physical: Option<u16>,
    /// Logical processors, without regard to limits of the process.
    pub cores_logical: Option<u16>,
    /// Logical processors that a process may use: fewer under an affinity mask or a control group's quota.
    /// `auto` compares this number.
    pub cores_usable: Option<u16>,
    /// Third-level caches, bytes, all together.
    pub l3_bytes: Option<u64>,
    /// Main memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Memory nodes.
    pub numa_nodes: Option<u16>,
    /// Name of the first accelerator; `auto` compares it.
    pub accelerator: Option<String>,
    /// Memory of that accelerator, bytes.
    pub accelerator_memory_bytes: Option<u64>,
    /// Distribution and its version.
    pub os: Option<String>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Frequency governor.
    pub governor: Option<String>,
    /// Compiler that built the server.
    pub rustc: Option<String>,
    /// Version of ONNX Runtime that the server loads.
    pub onnxruntime: Option<String>,
    /// Version of the accelerator's driver.
    pub driver: Option<String>,
    /// Revision of the processor's microcode.
    pub microcode: Option<String>,
}

impl Machine {
    /// Reads the properties of this machine. A property that the system does not show stays `None` and is
    /// no error. Starts `nvidia-smi` if there is a driver for it.
    #[must_use]
    pub fn detect() -> Self {
        let mut machine = Self::read(Path::new("/"));
        let usable = std::thread::available_parallelism().ok();
        machine.cores_usable = usable.map(|cores| u16::try_from(cores.get()).unwrap_or(u16::MAX));
        machine.rustc = Some(rustc_version_runtime::version().to_string());
        // No other version is ever loaded: `serve` checks the file's SHA-256.
        machine.onnxruntime = Some(Artefact::OnnxRuntime.entry().wheel.version.to_owned());
        let has_driver = machine.driver.is_some() || Path::new("/dev/nvidiactl").exists();
        if let Some(report) = has_driver.then(nvidia_smi).flatten() {
            machine.take_nvidia_smi(&report);
        }
        machine
    }

    /// Returns the logical processors for the plan's rules: those that a process may use, at least 1.
    #[must_use]
    pub fn cores(&self) -> u16 {
        self.cores_usable.unwrap_or(1)
    }

    /// Returns every key of the section in order, with its value; null for an unknown one.
    pub(super) fn fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            other => unreachable!("a struct of texts, numbers and names is an object: {other:?}"),
        }
    }

    /// Returns the lines of the section.
    pub(super) fn to_toml(&self) -> String {
        let fields = self.fields().into_iter().filter(|(_, value)| !value.is_null());
        fields.map(|(key, value)| format!("{key} = {}\n", notation(&value))).collect()
    }

    /// Reads the properties that the files of the system below `root` show.
    fn read(root: &Path) -> Self {
        let text = |path: &str| line_of(&root.join(path));
        let cpuinfo = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
        let meminfo = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
        let logical = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
        let cpus = root.join("sys/devices/system/cpu");
        let mut cores = BTreeSet::new();
        let mut caches = BTreeMap::new();
        for cpu in numbered(&cpus, "cpu") {
            cores.extend(
                line_of(&cpu.join("topology/core_cpus_list"))
                    .or_else(|| line_of(&cpu.join("topology/thread_siblings_list"))),
            );
            let sharers = line_of(&cpu.join("cache/index3/shared_cpu_list"));
            let size = line_of(&cpu.join("cache/index3/size")).and_then(|size| binary_size(&size));
            caches.extend(sharers.zip(size));
        }
        Self {
            cpu_model: cpu_model(&cpuinfo).or_else(|| text("proc/device-tree/model")),
            isa: isa(&cpuinfo),
            cores_physical: some_count(cores.len()),
            cores_logical: some_count(logical),
            cores_usable: None,
            l3_bytes: Some(caches.values().sum()).filter(|&bytes| bytes > 0),
            memory_bytes: field(&meminfo, "MemTotal").and_then(binary_size),
            numa_nodes: some_count(numbered(&root.join("sys/devices/system/node"), "node").len()),
            accelerator: proc_accelerator(&root.join("proc/driver/nvidia/gpus")),
            accelerator_memory_bytes: None,
            os: os(&fs::read_to_string(root.join("etc/os-release")).unwrap_or_default()),
            kernel: text("proc/sys/kernel/osrelease"),
            governor: text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            rustc: None,
            onnxruntime: None,
            driver: text("proc/driver/nvidia/version").and_then(|line| driver_version(&line)),
            microcode: field(&cpuinfo, "microcode").map(str::to_owned),
        }
    }

    /// Replaces the values from the driver's files by those of `nvidia-smi`, which in a container names the
    /// devices that may be used.
    fn take_nvidia_smi(&mut self, report: &str) {
        let Some(first) = report.lines().next() else { return };
        let [name, mebibytes, driver] = first.split(',').map(str::trim).collect::<Vec<_>>()[..] else {
            return;
        };
        self.accelerator = Some(name.to_owned());
        self.accelerator_memory_bytes = mebibytes.parse::<u64>().ok().map(|mebibytes| mebibytes << 20);
        self.driver = Some(driver.to_owned());
    }
}

/// Formats a value for TOML, with digit groups, on one line.
pub(super) fn notation(value: &Value) -> String {
    match value {
        Value::Number(number) => grouped(&number.to_string()),
        Value::Array(values) => format!("[{}]", values.iter().map(notation).collect::<Vec<_>>().join(", ")),
        // JSON's escapes are valid in TOML, too.
        other => other.to_string(),
    }
}

/// Groups the digits of a number, as in `25_165_824_000`.
fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// Returns the first line of a file of the system, without the NUL that device trees end with.
fn line_of(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    (!line.is_empty()).then(|| line.to_owned())
}

/// Returns the value of the first `key : value` line.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let value = fields.find(|(name, _)| name.trim() == key)?.1.trim();
    (!value.is_empty()).then_some(value)
}

/// Returns the model's name on x86. Arm has the numbers of the implementer and the part, which name the
/// model as well.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let x86 = field(cpuinfo, "model name").map(str::to_owned);
    x86.or_else(|| {
        let (implementer, part) = (field(cpuinfo, "CPU implementer")?, field(cpuinfo, "CPU part")?);
        Some(format!("implementer {implementer} part {part}"))
    })
}

/// Returns the extensions of the first processor, from the line `flags` on x86 or `Features` on Arm.
fn isa(cpuinfo: &str) -> Option<BTreeSet<Isa>> {
    let names = field(cpuinfo, "flags").or_else(|| field(cpuinfo, "Features"))?;
    Some(names.split_whitespace().filter_map(Isa::named).collect())
}

/// Returns the folders `<prefix><number>` in `folder`.
fn numbered(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let is_numbered = |path: &PathBuf| {
        let number = path.file_name().and_then(|name| name.to_str()?.strip_prefix(prefix));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).filter(is_numbered).collect()
}

/// Parses sizes such as `32768K` and `24 kB`, in the kernel's units of 1,024 bytes.
fn binary_size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    match text[digits..].trim() {
        "" => Some(number),
        "K" | "kB" => number.checked_mul(1_024),
        "M" => number.checked_mul(1_024 * 1_024),
        _ => None,
    }
}

fn some_count(count: usize) -> Option<u16> {
    u16::try_from(count).ok().filter(|&count| count > 0)
}

/// Returns the distribution and version of os-release(5), such as `debian 12`.
fn os(release: &str) -> Option<String> {
    let value = |key: &str| {
        let mut lines = release.lines().filter_map(|line| line.split_once('='));
        Some(lines.find(|(name, _)| *name == key)?.1.trim_matches('"'))
    };
    let id = value("ID")?;
    Some(value("VERSION_ID").map_or_else(|| id.to_owned(), |version| format!("{id} {version}")))
}

/// Returns the name of the first device from the driver's files.
fn proc_accelerator(gpus: &Path) -> Option<String> {
    let mut devices: Vec<_> = gpus.read_dir().ok()?.flatten().map(|entry| entry.path()).collect();
    devices.sort();
    let information = fs::read_to_string(devices.first()?.join("information")).ok()?;
    field(&information, "Model").map(str::to_owned)
}

/// Returns the first word that begins with a digit, as in `NVRM version: NVIDIA UNIX x86_64 Kernel Module
/// 570.86.15  …`.
fn driver_version(line: &str) -> Option<String> {
    line.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned)
}

fn nvidia_smi() -> Option<String> {
    let query = ["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"];
    let output = Command::new("nvidia-smi").args(query).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("below the root")).expect("writable");
            fs::write(path, text).expect("writable");
        }
        root
    }

    /// Two cores of two threads each, and a driver.
    #[test]
    fn a_large_machine_is_read() {
        let cpu = "processor\t: 0\nmodel name\t: AMD EPYC 9554 64-Core Processor\nmicrocode\t: 0xa10113e\n\
                   flags\t\t: fpu avx2 avx512f avx512_vnni amx_int8\n\n";
        let mut files = vec![
            ("proc/meminfo".to_owned(), "MemTotal:       24576000 kB\nMemFree: 1 kB\n"),
            ("proc/sys/kernel/osrelease".to_owned(), "6.1.0-25-amd64\n"),
            (
                "etc/os-release".to_owned(),
                "PRETTY_NAME=\"Debian GNU/Linux 12\"\nVERSION_ID=\"12\"\nID=debian\n",
            ),
            ("sys/devices/system/node/node0/x".to_owned(), ""),
            ("sys/devices/system/node/node1/x".to_owned(), ""),
            ("sys/devices/system/cpu/cpufreq/x".to_owned(), ""),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor".to_owned(), "performance\n"),
            (
                "proc/driver/nvidia/version".to_owned(),
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23\n",
            ),
            (
                "proc/driver/nvidia/gpus/0000:01:00.0/information".to_owned(),
                "Model: \t\t NVIDIA H200\nIRQ:   \t\t 16\n",
            ),
        ];
        for (number, siblings) in ["0,2", "1,3", "0,2", "1,3"].into_iter().enumerate() {
            let folder = format!("sys/devices/system/cpu/cpu{number}");
            files.push((format!("{folder}/topology/core_cpus_list"), siblings));
            files.push((format!("{folder}/cache/index3/shared_cpu_list"), "0-3"));
            files.push((format!("{folder}/cache/index3/size"), "32768K"));
        }
        let cpuinfo = cpu.repeat(4);
        files.push(("proc/cpuinfo".to_owned(), &cpuinfo));
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let root = tree(&files);
        let text = |text: &str| Some(text.to_owned());
        let mut expected = Machine {
            cpu_model: text("AMD EPYC 9554 64-Core Processor"),
            isa: Some(BTreeSet::from([Isa::Avx2, Isa::Avx512f, Isa::Avx512Vnni, Isa::AmxInt8])),
            cores_physical: Some(2),
            cores_logical: Some(4),
            l3_bytes: Some(32 << 20),
            memory_bytes: Some(24_576_000 * 1_024),
            numa_nodes: Some(2),
            accelerator: text("NVIDIA H200"),
            os: text("debian 12"),
            kernel: text("6.1.0-25-amd64"),
            governor: text("performance"),
            driver: text("570.86.15"),
            microcode: text("0xa10113e"),
            ..Machine::default()
        };
        let mut machine = Machine::read(root.path());
        assert_eq!(machine, expected);

        machine.take_nvidia_smi("NVIDIA H200 NVL, 143771, 570.86.16\nNVIDIA H200 NVL, 143771, 570.86.16\n");
        expected.accelerator = text("NVIDIA H200 NVL");
        expected.accelerator_memory_bytes = Some(143_771 << 20);
        expected.driver = text("570.86.16");
        assert_eq!(machine, expected);
    }

    #[test]
    fn an_arm_machine_is_named_by_its_numbers() {
        let cpuinfo =
            "processor\t: 0\nFeatures\t: fp asimd asimddp sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n";
        let root = tree(&[("proc/cpuinfo", cpuinfo)]);
        let machine = Machine::read(root.path());
        assert_eq!(machine.cpu_model.as_deref(), Some("implementer 0x41 part 0xd40"));
        assert_eq!((machine.cores_logical, machine.accelerator), (Some(1), None));
        assert_eq!(machine.isa, Some(BTreeSet::from([Isa::Asimddp, Isa::Sve])));
    }

    /// Checks the properties that are not in the system's files.
    #[test]
    fn this_process_is_known() {
        let machine = Machine::detect();
        assert!(machine.cores_usable <= machine.cores_logical && machine.cores() >= 1, "{machine:?}");
        let minimum = env!("CARGO_PKG_RUST_VERSION").split_once('.').expect("major and minor");
        let rustc = machine.rustc.expect("known when this was built");
        let (major, rest) = rustc.split_once('.').expect("a version");
        let number = |text: &str| text.parse::<u32>().expect("a number");
        let minor = rest.split('.').next().map(number);
        assert!((number(major), minor) >= (number(minimum.0), Some(number(minimum.1))), "{rustc}");
        assert_eq!(machine.onnxruntime.as_deref(), Some(Artefact::OnnxRuntime.entry().wheel.version));
    }

    #[test]
    fn the_lines_of_the_section_are_toml() {
        let machine = Machine {
            cpu_model: Some("a \"quoted\"\tname\n".to_owned()),
            isa: Some(BTreeSet::from([Isa::Avx512f, Isa::Avx2])),
            cores_logical: Some(128),
            l3_bytes: Some(1_000),
            memory_bytes: Some(25_165_824_000),
            ..Machine::default()
        };
        let text = machine.to_toml();
        assert_eq!(toml::from_str::<Machine>(&text).expect("TOML"), machine, "{text}");
        for line in [
            "isa = [\"avx2\", \"avx512f\"]",
            "cores_logical = 128",
            "l3_bytes = 1_000",
            "memory_bytes = 25_165_824_000",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        assert_eq!(text.lines().count(), 5, "{text}");
        assert_eq!(Machine::default().to_toml(), "");
    }

    #[test]
    fn a_system_that_tells_nothing_is_no_error() {
        let root = tree(&[
            ("proc/driver/nvidia/gpus/0/information", "nonsense"),
            ("proc/meminfo", "MemTotal: lots"),
        ]);
        assert_eq!(Machine::read(root.path()), Machine::default());
        let mut machine = Machine::default();
        machine.take_nvidia_smi("NVIDIA-SMI has failed because it could not talk to the driver");
        assert_eq!(machine, Machine::default());
    }
}
