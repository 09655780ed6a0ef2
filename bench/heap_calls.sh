#!/usr/bin/env bash
# Calls of the C allocator on the stage threads while sessions talk to the real models: what ONNX Runtime and its C++
# library take from the heap inside model calls, which Rust's allocator cannot see. One JSON object per stage thread.
#
#   bench/heap_calls.sh [SESSIONS] [SECONDS] [WAV]    defaults: 1 20 tests/golden/speech/austen-0880.wav
#
# The server exports mimalloc as malloc, so that ONNX Runtime uses it too; probes sit on its entry points. Rust's own calls
# go through the same functions, and /metrics says how many of them there were: none. Needs perf and the right to probe.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sessions=${1:-1}
seconds=${2:-20}
speech=${3:-tests/golden/speech/austen-0880.wav}

command -v perf >/dev/null || { echo "bench/heap_calls.sh: perf not found: install it" >&2; exit 1; }

source bench/stage_threads.sh
trap 'kill $(jobs -p) 2>/dev/null || true; perf probe -q -d "antiphon_heap:*" 2>/dev/null || true; rm -rf "$work"' EXIT
cargo build --release --quiet
for entry in malloc calloc realloc memalign posix_memalign aligned_alloc _Znwm; do
    # Aliases of one address are one probe.
    perf probe -q -f --no-demangle -x target/release/antiphon "antiphon_heap:$entry=$entry" 2>>"$work/probe" ||
        { cat "$work/probe" >&2; exit 1; }
done
start_server "$sessions"
start_talkers "$sessions" "$seconds" --speech "$speech"

counting=() threads=()
while read -r tid name; do
    perf stat -x, -o "$work/$name" -e 'antiphon_heap:*' -t "$tid" -- sleep "$seconds" &
    counting+=("$!") threads+=("$name")
done < <(stage_threads)
wait "${counting[@]}"
wait "$client"

for name in "${threads[@]}"; do
    awk -F, -v thread="$name" -v sessions="$sessions" -v seconds="$seconds" '
        /antiphon_heap/ { sub("antiphon_heap:", "", $3); calls[$3] += $1 }
        END {
            printf "{\"bench\":\"heap_calls\",\"stages\":\"real\",\"sessions\":%d,\"seconds\":%d,\"thread\":\"%s\",", sessions, seconds, thread
            printf "\"unit\":\"calls per session-second\""
            for (entry in calls) printf ",\"%s\":%.1f", entry, calls[entry] / sessions / seconds
            print "}"
        }' "$work/$name"
done
