#!/usr/bin/env bash
# Measure the overhead of the default backend on a small image: `gpufilter smooth` (backend auto) and libpng decoding
# and encoding alone, with the same settings, in alternation. Usage: bench/start.sh BUILD [RUNS [WIDTH HEIGHT]]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build} runs=${2:-21} width=${3:-1250} height=${4:-800}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/draw" --photo "$width" "$height" 1 "$work/photo.png"

seconds() { # COMMAND...: print its wall time
    local start=$EPOCHREALTIME
    "$@"
    awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN {print b - a}'
}
median() { sort -n | awk '{v[NR] = $1} END {print (NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2)}'; }

for run in $(seq 0 "$runs"); do
    a=$(seconds "$build/gpufilter" smooth --force --sync never "$work/photo.png" "$work/out.png")
    b=$(seconds "$build/codec" "$work/photo.png" "$work/copy.png")
    [ "$run" -eq 0 ] || echo "$a $b" # pair 0 is a warm-up
done >"$work/times"
ours=$(cut -d ' ' -f 1 "$work/times" | median)
codec=$(cut -d ' ' -f 2 "$work/times" | median)
ratio=$(awk '{print $1 / $2}' "$work/times" | median)
printf '%dx%d RGB PNG, medians of %d pairs\n' "$width" "$height" "$runs"
printf 'gpufilter smooth, default backend   %7.1f ms\n' "$(awk -v s="$ours" 'BEGIN {print s * 1000}')"
printf 'libpng decode + encode alone        %7.1f ms\n' "$(awk -v s="$codec" 'BEGIN {print s * 1000}')"
printf 'ratio                               %7.2f\n' "$ratio"
