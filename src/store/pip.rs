//! Runs of `pip download`, and the interpretation of their output.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::StoreError;
use super::manifest::Wheel;

/// Period between two readings of the size of the growing file.
const LOOK_PERIOD: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Version of Python that wheels are chosen for: every wheel of the manifest admits it. The machine's own may be any
/// version that has pip 20.
const PYTHON_VERSION: &str = "3.11";

/// Retries of pip in the first run. pip does not wait before its first retry. Before the four others of its default pip
/// waits, 7.5 s in all.
const QUICK_RETRIES: &str = "1";

/// Saves `wheel` into the empty folder `into` with pip. Calls `reached` with the number of bytes there so far. Fails at
/// once if pip can connect to no server. Otherwise pip is as patient with the server as the user configured.
///
/// # Errors
/// [`StoreError::PythonMissing`], [`StoreError::PipMissing`], [`StoreError::NoNetwork`],
/// [`StoreError::BrokenNetwork`], [`StoreError::NoVersion`], [`StoreError::DiskFull`], [`StoreError::Pip`],
/// [`StoreError::OtherWheel`], [`StoreError::Io`].
pub(super) fn download(
    python: &Path,
    wheel: &Wheel,
    into: &Path,
    reached: &mut dyn FnMut(u64),
) -> Result<PathBuf, StoreError> {
    match attempt(python, wheel, into, &["--retries", QUICK_RETRIES], reached) {
        Err(error) if may_pass(&error) => attempt(python, wheel, into, &[], reached),
        outcome => outcome,
    }
}

/// Returns true if more patience may help. An index that lists no version at all may have failed to answer, which pip
/// does not show.
fn may_pass(error: &StoreError) -> bool {
    match error {
        StoreError::BrokenNetwork { .. } | StoreError::Pip { .. } => true,
        StoreError::NoVersion { offered, .. } => offered == NO_VERSIONS,
        _ => false,
    }
}

/// Runs pip once, with further `options`.
fn attempt(
    python: &Path,
    wheel: &Wheel,
    into: &Path,
    options: &[&str],
    reached: &mut dyn FnMut(u64),
) -> Result<PathBuf, StoreError> {
    let mut command = command(python, wheel, into, options);
    let (status, output) = run(&mut command, into, reached).map_err(|failure| match failure {
        Failure::Start(reason) => StoreError::PythonMissing { python: python.to_owned(), reason },
        Failure::Watch(reason) => StoreError::reading(into, reason),
    })?;
    if !status.success() {
        return Err(explain(&output, status, python, wheel, into));
    }
    let saved = into.join(wheel.file);
    if saved.is_file() { Ok(saved) } else { Err(other_wheel(wheel, into)) }
}

fn command(python: &Path, wheel: &Wheel, into: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "download", "--no-input", "--disable-pip-version-check"]).args(options);
    // The bar is drawn by this program; a copy in pip's own cache would only cost space.
    command.args(["--progress-bar", "off", "--no-cache-dir"]);
    command.args(["--no-deps", "--only-binary=:all:", "--python-version", PYTHON_VERSION]);
    command.args([
        "--implementation",
        wheel.implementation,
        "--abi",
        wheel.abi,
        "--platform",
        wheel.platform,
    ]);
    command.arg("--dest").arg(into).arg(format!("{}=={}", wheel.package, wheel.version));
    // `python -m` looks for modules in the current folder first, so this one is empty. pip writes the growing file to
    // TMPDIR. There it can be watched, and there is room for it if there is room for the cache.
    command.current_dir(into).env("TMPDIR", into).stdin(Stdio::null());
    command
}

enum Failure {
    Start(io::Error),
    Watch(io::Error),
}

/// Runs `command` to its end; returns its status and all its output.
fn run(
    command: &mut Command,
    watched: &Path,
    reached: &mut dyn FnMut(u64),
) -> Result<(ExitStatus, String), Failure> {
    let (mut reader, writer) = io::pipe().map_err(Failure::Watch)?;
    command.stderr(writer.try_clone().map_err(Failure::Watch)?).stdout(writer);
    let mut child = PipProcess(command.spawn().map_err(Failure::Start)?);
    // The write ends that `command` still holds would keep the pipe open for ever.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let mut output = Vec::new();
    let mut chunk = [0; 4_096];
    loop {
        match poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&LOOK_PERIOD)) {
            Ok(0) => reached(bytes_under(watched)),
            Ok(_) => match reader.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => output.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::Watch(error)),
            },
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Failure::Watch(error.into())),
        }
    }
    let status = child.0.wait().map_err(Failure::Watch)?;
    Ok((status, String::from_utf8_lossy(&output).into_owned()))
}

/// A child that does not outlive the attempt.
struct PipProcess(Child);

impl Drop for PipProcess {
    fn drop(&mut self) {
        // Both have no effect on a child that has been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the sum of the sizes of the files under `folder`; files that vanish meanwhile count as empty.
fn bytes_under(folder: &Path) -> u64 {
    let Ok(entries) = folder.read_dir() else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_under(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

fn other_wheel(wheel: &Wheel, into: &Path) -> StoreError {
    let mut found: Vec<_> = into
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| Path::new(name).extension() == Some(OsStr::new("whl")))
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    found.sort();
    let found = if found.is_empty() { "nothing".to_owned() } else { found.join(", ") };
    StoreError::OtherWheel { package: wheel.package, version: wheel.version, found, expected: wheel.file }
}

/// pip's errors for a failed connection: no address for the name, no route, no answer.
const NO_CONNECTION: [&str; 3] = ["NameResolutionError", "NewConnectionError", "ConnectTimeoutError"];

/// pip's list of versions if the index has none.
const NO_VERSIONS: &str = "none";

/// Returns the error of a failed run. pip has one exit status for everything, so its output must be read. The phrases
/// below were seen from pip 20.0.2, 23.2 and 26.3.
fn explain(output: &str, status: ExitStatus, python: &Path, wheel: &Wheel, into: &Path) -> StoreError {
    let Wheel { package, version, .. } = *wheel;
    let says = |phrase| output.contains(phrase);
    if says("No module named pip") {
        return StoreError::PipMissing { python: python.to_owned() };
    }
    if says("[Errno 28]") || says("No space left on device") {
        return StoreError::DiskFull { path: into.to_owned() };
    }
    // An unreachable index and an unknown version end with the same two lines; only the retries distinguish them.
    let is_broken = |line: &&str| {
        ["connection broken by", "Max retries exceeded", "Read timed out"]
            .iter()
            .any(|phrase| line.contains(phrase))
    };
    let mut broken = output.lines().filter(is_broken).peekable();
    if broken.peek().is_some() {
        let detail = system_reason(output);
        let is_connected = |line: &str| !NO_CONNECTION.iter().any(|kind| line.contains(kind));
        return if broken.any(is_connected) {
            StoreError::BrokenNetwork { package, version, detail }
        } else {
            StoreError::NoNetwork { package, version, detail }
        };
    }
    if says("No matching distribution found") {
        let offered = between(output, "(from versions: ", ")").unwrap_or(NO_VERSIONS).to_owned();
        return StoreError::NoVersion { package, version, offered };
    }
    StoreError::Pip { package, version, status, detail: last_word(output) }
}

/// Returns the system's reason, such as `[Errno 111] Connection refused`, from nested Python exceptions.
fn system_reason(output: &str) -> String {
    let Some(start) = output.rfind("[Errno ") else { return last_word(output) };
    output[start..].split(['\'', '"', ')', '\n']).next().unwrap_or_default().trim().to_owned()
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(open)?;
    Some(rest.split_once(close)?.0)
}

/// Returns the last line that pip marks as an error, or else the last line.
fn last_word(output: &str) -> String {
    let lines = || output.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().find(|line| line.starts_with("ERROR:")).or_else(|| lines().next());
    line.unwrap_or("no output").trim_start_matches("ERROR:").trim().to_owned()
}
