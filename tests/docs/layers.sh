#!/usr/bin/env bash
# Who calls whom: tests/docs/layers.sh BUILD. Calls and includes go from room to room only as the lines with an arrow in
# docs/design.md say, and never in a circle; tests/docs/circles.txt has the exceptions. What is called is read from the objects.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=${1:-build}

# FROM -> TO TO...: rooms (folders) and files without their ending; `filters` is each folder in it as well.
sed -nE 's/^    ([a-z_/]+) +->  *([a-z_/ ]+)$/\1 \2/p' docs/design.md >"$work/allowed"

find src filters cuda -name '*.c' -o -name '*.cu' | sort >"$work/sources"
# SOURCE OBJECT: one a SIMD level, or none here.
find "$build/obj" -name '*.o' | sed "s|^$build/obj/||" | awk '
    NR == FNR {source[$0]; next}
    {
        stem = $0
        sub(/\.o$/, "", stem)
        if (!(stem in source)) {
            sub(/\.(portable|avx2|avx512)$/, "", stem)
            stem = stem ".c"
        }
        if (stem in source) print stem, $0 # and not what was built of a file that is gone
    }' "$work/sources" - >"$work/objects"
# FROM TO SYMBOL, of different files, without their endings. What C++ makes in many objects is weak, and left alone.
(cd "$build/obj" && cut -d ' ' -f 2 "$work/objects" | xargs nm -A -P -g) | awk '
    NR == FNR {stem[$2] = $1; next}
    {file = stem[substr($1, 1, length($1) - 1)]; sub(/\.[a-z]+$/, "", file)}
    $3 ~ /^[TDBRC]$/ {of[$2] = of[$2] " " file}
    $3 == "U" {asked[file " " $2]}
    END {
        for (a in asked) {
            split(a, ask)
            n = split(of[ask[2]], files)
            for (i = 1; i <= n; i++) if (files[i] != ask[1]) print ask[1], files[i], ask[2]
        }
    }' "$work/objects" - | sort -u >"$work/calls"
# FROM TO HEADER; what is in no folder of ours is the system's.
find src filters cuda -type f | sort >"$work/files"
grep -rE '^#include "' src filters cuda --include='*.[ch]' --include='*.cu' --include='*.cuh' | awk '
    NR == FNR {there[$0]; next}
    {
        split($0, parts, "\"")
        file = from = parts[1]
        sub(/:.*/, "", file)
        sub(/\/[^\/]*$/, "", from)
        n = split(from " src filters cuda", folders)
        for (i = 1; i <= n; i++)
            if ((folders[i] "/" parts[2]) in there) {
                print file, folders[i] "/" parts[2], parts[2]
                break
            }
    }' "$work/files" - | awk '$1 != $2' >"$work/included"
sed -E 's/^([^ ]*)\.[a-z]+ ([^ ]*)\.[a-z]+ /\1 \2 /' "$work/included" >"$work/includes"

is_built() { # but for what needs nvcc, MPI or cairo
    local bare
    bare=$(cut -d ' ' -f 1 "$work/objects" | sort -u | comm -23 "$work/sources" - | grep -v '^cuda/\|^src/cli/\|^src/mpi/')
    [ -z "$bare" ] && [ "$(wc -l <"$work/calls")" -gt 500 ] && [ "$(wc -l <"$work/includes")" -gt 300 ] && return
    echo "no object: $bare"
    return 1
}
says_something() { [ "$(wc -l <"$work/allowed")" -ge 6 ]; }

only_allowed() { # CALLS-OR-INCLUDES
    awk 'function room(file) {sub(/\/[^\/]*$/, "", file); return file}
        function is(file, what) {
            return file == what || room(file) == what || (what == "filters" && room(file) ~ /^filters\//)
        }
        NR == FNR {n++; split($0, words); from[n] = $1; $1 = ""; to[n] = $0; next}
        room($1) == room($2) || room($1) == "src/cli" || room($1) == "src/mpi" {next}
        {
            for (i = 1; i <= n; i++) {
                m = split(to[i], words)
                for (k = 1; is($1, from[i]) && k <= m; k++) if (is($2, words[k])) next
            }
            print $1 " may not ask " $2 " for " $3
            bad = 1
        }
        END {exit bad}' "$work/allowed" "$1"
}
program_asks() { # only for what the public header declares
    awk '($1 ~ /^src\/cli\// && $2 !~ /^src\/cli\//) || ($1 ~ /^src\/mpi\// && $2 !~ /^src\/(cli|mpi)\//) {print $3}' "$work/calls" | sort -u >"$work/asked"
    [ -s "$work/asked" ] && ! grep -vxFf <(grep -ohE '\bgf_[a-z0-9_]+' src/gpufilter.h src/gpufilter_tools.h) "$work/asked"
}

listed() { grep -v '^#' tests/docs/circles.txt | grep . || :; }
no_circle() { # CALLS-OR-INCLUDES
    grep -vFf <(listed | sed 's/$/ /') "$1" | cut -d ' ' -f 1,2 | tsort >/dev/null
}
still_there() { # each exception closes a circle, or it is none
    local from to
    listed | while read -r from to; do
        grep -qF "$from $to " "$work/calls" || { echo "$from does not call $to any more: take it out of tests/docs/circles.txt" && exit 1; }
        ! grep -vFf <(listed | grep -vxF "$from $to" | sed 's/$/ /') "$work/calls" | cut -d ' ' -f 1,2 | tsort >/dev/null 2>&1 ||
            { echo "$from may call $to without a circle: take it out of tests/docs/circles.txt" && exit 1; }
    done
}

# Files that a page names, in a folder or by their names alone.
named_files() { # PAGE
    { grep -oE '`[A-Za-z0-9_./*]+\.(c|h|cu|cuh|sh|py|t|def|txt|mk)`' "$1" || :; } | tr -d '`' | sed '/NAME\|mine/d' | sort -u | {
        gone=0
        while read -r name; do
            case $name in
            */*) compgen -G "$name" || compgen -G "src/$name" || compgen -G "filters/$name" ;;
            *) find . -name build -prune -o -name "$name" -print -quit | grep . ;;
            esac >/dev/null || { echo "$name" && gone=1; }
        done
        [ $gone = 0 ]
    }
}

check "everything is built" is_built
check "docs/design.md says who may call whom" says_something
check "calls go where they may" only_allowed "$work/calls"
check "includes go where they may" only_allowed "$work/includes"
check "the program asks for what the header declares" program_asks
check "calls go in no circle" no_circle "$work/calls"
sed 's/^\([^ ]* [^ ]*\) .*/\1/' "$work/included" >"$work/headers"
check "includes go in no circle" no_circle "$work/headers"
check "tests/docs/circles.txt holds nothing else" still_there
for page in README.md CONTRIBUTING.md docs/*.md; do
    check "the files that $page names are there" named_files "$page"
done
check_sum
