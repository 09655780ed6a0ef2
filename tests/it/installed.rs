//! Clients as their makers publish them, each in an environment of its own below the build folder.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;
use tokio::sync::Mutex;

/// One environment is made at a time: two clients may share it.
static INSTALLING: Mutex<()> = Mutex::const_new(());

/// A client as its makers publish it, and the program of ours that talks through it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    /// Name in the `bin` of the environment.
    pub(crate) interpreter: &'static str,
    /// File in `tests/clients`.
    pub(crate) program: &'static str,
    /// Files in `tests/clients` that say what is installed, the Python packages first.
    pub(crate) pins: &'static [&'static str],
}

impl Client {
    /// A folder that is a virtual environment with exactly the pinned packages; those of npm are in its `node_modules`.
    async fn environment(self) -> PathBuf {
        let pins: Vec<_> = self.pins.iter().map(|pin| source(pin)).collect();
        let wanted: String =
            pins.iter().map(|pin| std::fs::read_to_string(pin).expect("in the repository")).collect();
        let (requirements, packages) = pins.split_first().expect("Python packages");
        let name = requirements.file_stem().expect("a file");
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients").join(name);
        let _one_at_a_time = INSTALLING.lock().await;
        let stamp = home.join("installed.txt");
        if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return home;
        }
        run("python3".as_ref(), &["-m", "venv", "--clear", utf8(&home)]).await;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"];
        run(&home.join("bin/python"), &[&pip[..], &["--requirement", utf8(requirements)]].concat()).await;
        for file in packages {
            copy(file, &home);
        }
        if !packages.is_empty() {
            let npm = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", utf8(&home)];
            run(&home.join("bin/npm"), &npm).await;
        }
        std::fs::write(&stamp, wanted).expect("the environment has just been made");
        home
    }

    /// Runs the program; it fails unless it ends well.
    pub(crate) async fn run(self, args: &[&str]) {
        let home = self.environment().await;
        // Node looks for packages beside the program, Python in its environment.
        let program = if self.interpreter == "node" {
            copy(&source(self.program), &home)
        } else {
            source(self.program)
        };
        let args = [&[utf8(&program)], args].concat();
        print!("{}", run(&home.join("bin").join(self.interpreter), &args).await);
    }
}

fn source(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(file)
}

pub(crate) fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn copy(file: &Path, folder: &Path) -> PathBuf {
    let copied = folder.join(file.file_name().expect("a file"));
    std::fs::copy(file, &copied).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    copied
}

/// Runs to the end and gives what was printed; that is in the message if it fails.
async fn run(program: &Path, args: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await;
    let output = output.unwrap_or_else(|error| panic!("{}: {error}; this test needs it", program.display()));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {args:?}: {}\n{printed}{error}", program.display(), output.status);
    printed
}
