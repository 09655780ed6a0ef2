//! SHA-256 of files and of bytes on their way into a file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

/// Bytes read at a time: large enough to make system calls negligible, small enough for the
/// second-level cache.
const CHUNK_BYTES: usize = 128 * 1_024;

/// Size and SHA-256 of some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Checksum {
    /// Number of bytes.
    pub(super) bytes: u64,
    /// SHA-256 in lower-case hex.
    pub(super) sha256: String,
}

/// Returns the size and sum of the file at `path`.
///
/// # Errors
/// Returns the error of opening or reading the file.
pub(super) fn of_file(path: &Path) -> io::Result<Checksum> {
    copy(&mut File::open(path)?, &mut io::sink(), &mut |_| {})
}

/// Copies `from` to its end into `to` and sums the bytes. Calls `reached` with the number of bytes
/// copied so far.
///
/// # Errors
/// Returns the error of reading or writing.
pub(super) fn copy(
    from: &mut dyn Read,
    to: &mut dyn Write,
    reached: &mut dyn FnMut(u64),
) -> io::Result<Checksum> {
    let mut digest = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut bytes = 0;
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        digest.update(&chunk[..read]);
        to.write_all(&chunk[..read])?;
        bytes += read as u64;
        reached(bytes);
    }
    let sha256 = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Checksum { bytes, sha256 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vector "abc" of FIPS 180-4.
    #[test]
    fn copies_and_sums_what_passes() {
        let mut copied = Vec::new();
        let mut last = 0;
        let checksum = copy(&mut &b"abc"[..], &mut copied, &mut |bytes| last = bytes).expect("memory");
        assert_eq!(checksum.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!((checksum.bytes, last, copied.as_slice()), (3, 3, &b"abc"[..]));
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut full = File::options().write(true).open("/dev/full").expect("Linux has /dev/full");
        let error = copy(&mut &b"abc"[..], &mut full, &mut |_| {}).expect_err("nothing fits");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
