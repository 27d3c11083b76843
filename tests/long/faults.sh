#!/usr/bin/env bash
# Inject faults and kills at calls that may fail: tests/long/faults.sh BUILD runs a part of them; `make faults` runs
# all. First, check that no call is missing: each imported symbol is wrapped (calls.def) or listed as infallible.
set -uo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build}
. tests/support/check.sh

# Print the symbols of archives and objects.
imports() { nm -u "$@" 2>/dev/null | awk '$1 == "U" { print $2 }' | sort -u; }
exports() { nm --defined-only "$@" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u; }

no_call_is_missing() {
    local objects=("$build/libgpufilter.a") archives=() source unknown
    for source in src/cli/*.c; do
        [ ! -f "$build/obj/${source%.c}.o" ] || objects+=("$build/obj/${source%.c}.o")
    done
    for source in libpng16.a libjpeg.a libz.a; do
        archives+=("$(${CC:-cc} -print-file-name=$source)")
    done
    sed -nE 's/^(CALL|CLOSING|SPECIAL)\((\w+),.*/\2/p' tests/long/faults/*.def >"$work/wrapped"
    grep -v '^#' tests/long/faults/infallible.txt | tr ' ' '\n' >"$work/infallible"
    unknown=$(comm -23 <(imports "${objects[@]}" "${archives[@]}") \
        <(sort -u "$work/wrapped" "$work/infallible" <(exports "${objects[@]}" "${archives[@]}")))
    [ -z "$unknown" ] || {
        echo "in neither tests/long/faults/calls.def nor infallible.txt:" $unknown
        return 1
    }
}

faults=1000 kills=300
case $build in
*san-*) faults=200 kills=60 ;; # slower, and the sanitizer makes additional calls
*/coverage) ;; # coverage counters make additional calls
*) check "every imported call is wrapped or infallible" no_call_is_missing ;;
esac
"$build/tests/faults" "$build/gpufilter-faults" --short --faults $faults --kills $kills >"$work/faults"
code=$?
grep -v ' passed, ' "$work/faults"
read -r p f s < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$work/faults")
passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0})) skipped=$((skipped + ${s:-0}))
[ $code -eq 0 ] || [ "${f:-0}" -gt 0 ] || failed=$((failed + 1))
check_summary
