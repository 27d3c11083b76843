#!/usr/bin/env bash
# Compare transcripts of command lines, byte for byte: tests/system/transcripts.sh BUILD [write] [FILE]...
#
# The lines of a transcript (tests/system/cli/*.t):
#   # a comment
#   $ a command; bash runs it in an empty directory that contains samples/, with gpufilter on PATH
#   > its standard output
#   ! its standard error
#   [its exit code, if not 0]
# docs/tour.md is a transcript, too: the output in its console blocks has no marks.
# `write` stores the current output in the transcripts: review the difference before committing it.
set -uo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
build=$(cd "${1:-build}" && pwd)
export PATH=$build:$PATH LC_ALL=C
unset GF_REQUIRE_CUDA
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

run() { # FILE: print the transcript with the current output
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
            sed -e "s/^/$out/" -e '$a\' "$work/out"
            sed -e "s/^/$err/" -e '$a\' "$work/err"
            [ $code -eq 0 ] || [ -z "$err" ] || echo "[$code]"
        fi
    done <"$1"
    cd "$root" || exit
}

shift
write=
[ "${1:-}" != write ] || { write=yes && shift; }
[ $# -gt 0 ] || set -- tests/system/cli/*.t docs/tour.md
for transcript; do
    run "$root/$transcript" >"$work/now"
    if [ -n "$write" ]; then
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
