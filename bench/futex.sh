#!/usr/bin/env bash
# Futex calls of the stage threads while sessions talk, one JSON object per stage thread.
#
#   bench/futex.sh [SESSIONS] [SECONDS] [STAGES]      defaults: 32 10 fake
#
# A stage thread that never locks makes two kinds of futex calls: its own park (a wait for its parker's word, which std
# sets to 0xffffffff while it sleeps) and the wake of another sleeping stage thread (a wake on the word that thread waits on).
# Everything else is a lock. Waking the edge is a write to a pipe and no futex call. Needs strace and the right to trace.
# strace makes the server slow, so its times say nothing; the counts do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sessions=${1:-32}
seconds=${2:-10}
stages=${3:-fake}

command -v strace >/dev/null || { echo "bench/futex.sh: strace not found: install it" >&2; exit 1; }

source bench/stage_threads.sh
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
cargo build --release --quiet
start_server "$sessions" --stages "$stages"
start_talkers "$sessions" "$seconds"

# Attached for the measured seconds only: the talkers are in full swing.
tids=() names=()
while read -r tid name; do
    tids+=("$tid") names+=("$name")
done < <(stage_threads)
args=()
for tid in "${tids[@]}"; do args+=(-p "$tid"); done
timeout --signal=INT "$seconds" strace -ff -e trace=futex -o "$work/trace" "${args[@]}" 2>/dev/null || true
wait $client

# The words on which stage threads park.
cat "$work"/trace.* | awk -F'[(,]' '/FUTEX_WAIT/ && /4294967295/ { print $2 }' | sort -u >"$work/parkers"
for at in "${!tids[@]}"; do
    awk -F'[(,]' -v thread="${names[$at]}" -v sessions="$sessions" -v seconds="$seconds" -v stages="$stages" '
        FNR == NR { parker[$1] = 1; next }
        !/^futex/ { next }
        /FUTEX_WAIT/ && /4294967295/ { parks++; next }
        /FUTEX_WAKE/ && ($2 in parker) { wakes++; next }
        { locks++; if (!example) example = $0 }
        END {
            n = sessions * seconds
            printf "{\"bench\":\"futex\",\"stages\":\"%s\",\"sessions\":%d,\"seconds\":%d,\"thread\":\"%s\",", stages, sessions, seconds, thread
            printf "\"unit\":\"calls per session-second\",\"park\":%.3f,\"wake\":%.3f,\"lock\":%.3f}\n", parks / n, wakes / n, locks / n
            if (example) printf "first lock of %s: %s\n", thread, example > "/dev/stderr"
        }' "$work/parkers" "$work/trace.${tids[$at]}"
done
