# Sourced by the scripts that look at the stage threads of a server while sessions talk to it.
# shellcheck shell=bash

work=$(mktemp -d)

# Starts a server: start_server UNITS ARGUMENTS... Sets `server` (its process) and `url`.
start_server() {
    local units=$1
    shift
    target/release/antiphon serve --port 0 --units "$units" "$@" >"$work/out" 2>"$work/log" &
    server=$!
    until grep -q '^ready' "$work/out"; do
        kill -0 $server 2>/dev/null || { cat "$work/log" >&2; exit 1; }
        sleep 0.1
    done
    url=$(sed -n 's/^ready \([^ ]*\) .*/\1/p' "$work/out")
}

# Starts talkers, and waits until they are in full swing: start_talkers SESSIONS SECONDS ARGUMENTS... Sets `client`.
start_talkers() {
    local sessions=$1 seconds=$2 converse
    shift 2
    converse=$(cargo bench --bench converse --no-run 2>&1 | sed -n 's/.*(\(target[^)]*converse[^)]*\)).*/\1/p')
    "$converse" --bench talk --url "$url" --sessions "$sessions" --seconds $((seconds + 4)) "$@" \
        >/dev/null 2>"$work/client" &
    client=$!
    sleep 2
}

# The server's stage threads, one a line: number and name.
stage_threads() {
    local task name
    for task in /proc/"$server"/task/*; do
        name=$(<"$task/comm")
        [[ $name =~ ^(vad|stt|tts)- ]] && echo "${task##*/} $name"
    done
    return 0
}
