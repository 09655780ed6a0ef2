//! `antiphon profile`, and what `serve` says about its profile.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::server::{BINARY, Server};

fn antiphon(args: &[&str]) -> Output {
    let output = Command::new(BINARY).args(args).stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("{BINARY}: {error}"))
}

/// `antiphon profile dump > file`
fn dump(file: &Path) -> Output {
    let stdout = File::create(file).expect("writable");
    let output = Command::new(BINARY).args(["profile", "dump"]).stdin(Stdio::null()).stdout(stdout).output();
    output.unwrap_or_else(|error| panic!("{BINARY}: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[test]
fn a_dump_is_valid_under_any_name_and_of_this_machine() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["x", "some-cpu-cpu-debian12"] {
        let file = folder.path().join(format!("{name}.toml"));
        let output = dump(&file);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let path = file.to_str().expect("UTF-8");
        let output = antiphon(&["validate", path]);
        assert_eq!(text(&output.stdout), format!("{path}: valid, draft\n"));
        let output = antiphon(&["profile", "compare", path]);
        assert!(output.status.success(), "{}", text(&output.stdout));
        assert!(text(&output.stdout).starts_with(&format!("{name}: this machine, by ")));
    }
    let output = antiphon(&["profile", "dump"]);
    assert!(output.status.success() && text(&output.stdout).contains("\nname = \""), "to a pipe");

    let output = dump(&folder.path().join("My Machine.toml"));
    let error = text(&output.stderr);
    assert!(!output.status.success() && error.lines().count() == 1, "{error}");
    assert!(error.contains("My Machine.toml: meta.name: found \"My Machine\", expected "), "{error}");
}

#[tokio::test]
async fn a_profile_of_another_machine_is_said_by_compare_and_by_serve() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("other.toml");
    dump(&file);
    let here = fs::read_to_string(&file).expect("dumped");
    let other = here
        .lines()
        .filter(|line| !line.starts_with("driver = ") && !line.starts_with("kernel = "))
        .map(|line| line.replace("[machine]", "[machine]\ndriver = \"0.1\"\nkernel = \"0.2\""))
        .collect::<Vec<_>>();
    fs::write(&file, other.join("\n")).expect("writable");
    let path = file.to_str().expect("UTF-8");

    let output = antiphon(&["profile", "compare", path, "--fields", "driver,kernel,os"]);
    let lines = text(&output.stdout);
    let lines: Vec<_> = lines.lines().collect();
    assert_eq!((output.status.code(), lines.len()), (Some(1), 2), "{lines:?}");
    assert!(lines[0].starts_with("machine.kernel: found ") && lines[0].ends_with(", expected \"0.2\""));
    assert!(lines[1].starts_with("machine.driver: found ") && lines[1].ends_with(", expected \"0.1\""));
    assert!(text(&output.stderr).contains("differs from other in 2 of 3 keys"), "{}", text(&output.stderr));

    let server = Server::fake_with(1, &["--profile", path]).await;
    let log = server.log();
    let warnings: Vec<_> =
        log.lines().filter(|line| line.contains("the profile is of another machine")).collect();
    let [warning] = warnings.as_slice() else { panic!("{} warnings, expected 1: {log}", warnings.len()) };
    assert!(warning.contains("machine.driver: found ") && !warning.contains("kernel"), "{warning}");
}

#[tokio::test]
async fn a_profile_of_this_machine_is_no_reason_to_warn() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("here.toml");
    dump(&file);
    let server = Server::fake_with(1, &["--profile", file.to_str().expect("UTF-8")]).await;
    assert!(server.ready_line().ends_with(" profile=here"), "{}", server.ready_line());
    let log = server.log();
    assert!(log.contains("reason=\"read from ") && !log.contains("another machine"), "{log}");
}
