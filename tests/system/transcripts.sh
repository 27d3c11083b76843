#!/usr/bin/env bash
# Command-line tests: tests/system/transcripts.sh BUILD [write].
#
# A transcript (tests/system/cli/*.t) is what a terminal would show, checked to the byte:
#   # a comment
#   $ a command, run by bash in a fresh folder with gpufilter on PATH and the samples in samples/
#   > its standard output
#   ! its standard error
#   [its exit code, if not 0]
# docs/tour.md is one, too: in its console blocks the output stands below the command without a mark.
# `write` puts in what the commands now say: read the difference before you commit it.
set -uo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
build=$(cd "${1:-build}" && pwd)
export PATH=$build:$PATH LC_ALL=C
unset GF_REQUIRE_CUDA
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() { # FILE: the transcript as it is now
    local line code out='> ' err='! ' keep='^(#|$)' prose=
    [ "${1##*.}" != md ] || { out='' err='' keep='^```$' prose=yes; }
    rm -rf "$work/here" && mkdir "$work/here" && cd "$work/here" || exit
    ln -s "$root/samples" samples
    while IFS= read -r line; do
        if [ -n "$prose" ] || [[ $line =~ $keep ]]; then
            echo "$line"
            case $line in
            '```console') prose='' ;;
            '```') prose=yes ;;
            esac
        elif [[ $line == '$ '* ]]; then
            echo "$line"
            bash -c "${line#\$ }" >"$work/out" 2>"$work/err" </dev/null
            code=$?
            # A last line without a newline is still a line.
            sed -e "s/^/$out/" -e '$a\' "$work/out"
            sed -e "s/^/$err/" -e '$a\' "$work/err"
            [ $code -eq 0 ] || [ -z "$err" ] || echo "[$code]"
        fi
    done <"$1"
    cd "$root" || exit
}

for transcript in tests/system/cli/*.t docs/tour.md; do
    run "$root/$transcript" >"$work/now"
    if [ "${2:-}" = write ]; then
        cp "$work/now" "$transcript"
        continue
    fi
    commands=$(grep -c '^\$ ' "$transcript")
    if diff -u --label "$transcript" --label "$transcript (now)" "$transcript" "$work/now"; then
        passed=$((passed + commands))
    else
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
