//! A server that has its models tells nobody that it runs: it looks no name up, connects to nobody and writes nothing but
//! its cache.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::BufReader;
use tokio::process::Command;
use tokio::time::timeout;

use crate::client::Client;
use crate::server::{BINARY, REAL_START_LIMIT, address, machine, ready_line};

/// How long the server is watched after its answer. ONNX Runtime 1.32 looks its telemetry host up for the first time 9 s
/// after its environment has been made.
const WATCHED: Duration = Duration::from_secs(15);

/// A server without sessions is gone long before this.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Calls that can reach somebody.
const CALLS: &str = "trace=connect,sendto,sendmsg,sendmmsg";

#[tokio::test]
async fn a_server_looks_nothing_up_and_writes_nothing_but_its_cache() {
    let _machine = machine().await;
    let cache = cache().await;
    let before = files(&cache);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = |name: &str| folder.path().join(name);
    let empty = ["home", "work", "tmp"];
    empty.iter().for_each(|name| std::fs::create_dir(place(name)).expect("a new folder"));
    let (trace, log) = (place("trace"), place("log"));

    // The server is the child, strace its grandchild: -D. The environment is empty, as of a service: variables of a build
    // server turn some telemetry off.
    let mut server = Command::new("strace")
        .args(["-D", "-f", "-e", CALLS, "-o"])
        .arg(&trace)
        .args([BINARY, "serve", "--port", "0", "--units", "2", "--cache"])
        .arg(&cache)
        .env_clear()
        .envs([("HOME", place("home")), ("TMPDIR", place("tmp"))])
        .current_dir(place("work"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log).expect("writable"))
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("strace: {error}; this test needs it, and .ci/run installs it"));
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    let mut stdout = BufReader::new(server.stdout.take().expect("piped"));
    let ready = timeout(REAL_START_LIMIT, ready_line(&mut stdout)).await.expect("ready in time");
    let ready = ready.unwrap_or_else(|| panic!("the server ended, or strace may not watch it:\n{}", said()));

    let mut client = Client::open(address(&ready)).await;
    client.ask("What is the capital of France?").await;
    assert_eq!(client.answer().await.status, "completed");
    client.close().await;
    tokio::time::sleep(WATCHED).await;
    let pid = server.id().and_then(|id| Pid::from_raw(id.cast_signed())).expect("it runs");
    kill_process(pid, Signal::TERM).expect("it is ours");
    let ended = timeout(STOP_LIMIT, server.wait()).await.expect("an idle server ends").expect("our child");
    assert!(ended.success(), "{ended}: {}", said());

    let trace = std::fs::read_to_string(&trace).expect("strace has written it");
    #[cfg(feature = "builtin-llm")]
    assert!(trace.contains(LOOPBACK), "the call of the built-in model was not seen:\n{trace}");
    let mut unasked: Vec<_> = trace.lines().filter(|line| is_foreign(line)).map(str::to_owned).collect();
    let written = empty.iter().flat_map(|name| files(&place(name)));
    unasked.extend(written.map(|path| path.display().to_string()));
    assert!(unasked.is_empty(), "called or written, and nobody has asked for it:\n{}", unasked.join("\n"));
    assert_eq!(files(&cache), before, "below the cache");
}

/// How strace writes an address of this machine.
const LOOPBACK: &str = "inet_addr(\"127.0.0.1\")";

/// Whether a traced call names somebody outside this machine, or somebody on it who looks names up for others: a resolver on
/// port 53, or a daemon behind a socket file.
fn is_foreign(line: &str) -> bool {
    let is_here = line.contains(LOOPBACK) && !line.contains("htons(53)");
    let is_loopback_6 = line.contains("\"::1\"") && !line.contains("htons(53)");
    ["sa_family=AF_INET", "sa_family=AF_UNIX"].iter().any(|family| line.contains(family))
        && !is_here
        && !is_loopback_6
}

#[test]
fn a_foreign_address_is_found() {
    for line in [
        r#"1 connect(8, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("10.0.0.2")}, 16) = 0"#,
        r#"1 connect(8, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("127.0.0.53")}, 16) = 0"#,
        r#"1 connect(8, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("127.0.0.1")}, 16) = 0"#,
        r#"1 connect(8, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("20.1.2.3")}, 16 <unfinished ...>"#,
        r#"1 connect(8, {sa_family=AF_INET6, sin6_port=htons(443), inet_pton(AF_INET6, "2603::1", &sin6_addr)}, 28) = 0"#,
        r#"1 connect(8, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 ENOENT"#,
    ] {
        assert!(is_foreign(line), "{line}");
    }
    for line in [
        r#"1 connect(8, {sa_family=AF_INET, sin_port=htons(41000), sin_addr=inet_addr("127.0.0.1")}, 16) = 0"#,
        r#"1 sendto(8, "HTTP/1.1 200 OK", 15, MSG_NOSIGNAL, NULL, 0) = 15"#,
        "1 +++ exited with 0 +++",
    ] {
        assert!(!is_foreign(line), "{line}");
    }
}

/// The folder of the models, all of them there.
async fn cache() -> PathBuf {
    let output = Command::new(BINARY).args(["models", "fetch"]).stdin(Stdio::null()).output().await;
    let output = output.unwrap_or_else(|error| panic!("{BINARY}: {error}"));
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    let folder = said.split_once(": all ").map(|(folder, _)| PathBuf::from(folder));
    folder.unwrap_or_else(|| panic!("no models: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Every file and folder below `folder`, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()).collect();
    let below: Vec<_> = found.iter().filter(|path| path.is_dir()).flat_map(|path| files(path)).collect();
    found.extend(below);
    found.sort();
    found
}
