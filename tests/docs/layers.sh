#!/usr/bin/env bash
# Dependencies between directories: tests/docs/layers.sh BUILD. Calls and includes between directories must follow the arrows
# in docs/design.md, and must not be circular; tests/docs/circles.txt lists exceptions. Calls are read from the
# objects. src/registry.c defines tables that lower layers declare: calls of its functions are no arrows.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=${1:-build}

# FROM -> TO TO...: directories, which stand for their subdirectories, too, and files without extension.
sed -nE 's/^    ([a-z_/]+) +->  *([a-z_/ ]+)$/\1 \2/p' docs/design.md >"$work/allowed"

find src filters cuda -name '*.c' -o -name '*.cu' | sort >"$work/sources"
# SOURCE OBJECT: one object per SIMD level; no object if the source was not compiled.
find "$build/obj" -name '*.o' | sed "s|^$build/obj/||" | awk '
    NR == FNR {source[$0]; next}
    {
        stem = $0
        sub(/\.o$/, "", stem)
        if (!(stem in source)) {
            sub(/\.(portable|avx2|avx512|neon)$/, "", stem)
            stem = stem ".c"
        }
        if (stem in source) print stem, $0 # skips objects of deleted sources
    }' "$work/sources" - >"$work/objects"
# FROM TO SYMBOL, of different files, without extensions. Weak symbols, which C++ emits in many objects, are skipped.
(cd "$build/obj" && cut -d ' ' -f 2 "$work/objects" | xargs nm -A -P -g) | awk '
    NR == FNR {stem[$2] = $1; next}
    {file = stem[substr($1, 1, length($1) - 1)]; sub(/\.[a-z]+$/, "", file)}
    $3 ~ /^[TDBRC]$/ && file != "src/registry" {of[$2] = of[$2] " " file}
    $3 == "U" {used[file " " $2]}
    END {
        for (a in used) {
            split(a, use)
            n = split(of[use[2]], files)
            for (i = 1; i <= n; i++) if (files[i] != use[1]) print use[1], files[i], use[2]
        }
    }' "$work/objects" - | sort -u >"$work/calls"
# FROM TO HEADER. Headers outside of these directories belong to the system.
find src filters cuda -type f | sort >"$work/files"
grep -rE '^#include "' src filters cuda --include='*.[ch]' --include='*.cu' --include='*.cuh' | awk '
    NR == FNR {there[$0]; next}
    {
        split($0, parts, "\"")
        file = from = parts[1]
        sub(/:.*/, "", file)
        sub(/\/[^\/]*$/, "", from)
        n = split(from "/,src/,filters/,", directories, ",")
        for (i = 1; i <= n; i++)
            if ((directories[i] parts[2]) in there) {
                print file, directories[i] parts[2], parts[2]
                break
            }
    }' "$work/files" - | awk '$1 != $2' >"$work/included"
sed -E 's/^([^ ]*)\.[a-z]+ ([^ ]*)\.[a-z]+ /\1 \2 /' "$work/included" >"$work/includes"

is_built() { # except files that need nvcc, MPI or cairo
    local bare
    bare=$(cut -d ' ' -f 1 "$work/objects" | sort -u | comm -23 "$work/sources" - | grep -v '^cuda/\|^src/cli/\|^src/mpi/')
    [ -z "$bare" ] && [ "$(wc -l <"$work/calls")" -gt 500 ] && [ "$(wc -l <"$work/includes")" -gt 300 ] && return
    echo "no object: $bare"
    return 1
}
has_rules() { [ "$(wc -l <"$work/allowed")" -ge 6 ]; }

only_allowed() { # CALLS-OR-INCLUDES
    awk 'function directory(file) {sub(/\/[^\/]*$/, "", file); return file}
        function is(file, what) {
            return file == what || index(file, what "/") == 1
        }
        NR == FNR {n++; split($0, words); from[n] = $1; $1 = ""; to[n] = $0; next}
        directory($1) == directory($2) || index($1, "src/cli/") == 1 || (index($1, "src/mpi/") == 1 && index($2, "src/cli/") != 1) {next}
        {
            for (i = 1; i <= n; i++) {
                m = split(to[i], words)
                for (k = 1; is($1, from[i]) && k <= m; k++) if (is($2, words[k])) next
            }
            print $1 " may not use " $2 " for " $3
            denied = 1
        }
        END {exit denied}' "$work/allowed" "$1"
}
program_uses() { # the program may use only what the public headers declare
    awk '($1 ~ /^src\/cli\// && $2 !~ /^src\/cli\//) || ($1 ~ /^src\/mpi\// && $2 !~ /^src\/(cli|mpi)\//) {print $3}' "$work/calls" | sort -u >"$work/used"
    [ -s "$work/used" ] && ! grep -vxFf <(grep -ohE '\bgf_[a-z0-9_]+' src/gpufilter.h src/gpufilter_tools.h) "$work/used"
}

listed() { grep -v '^#' tests/docs/circles.txt | grep . || :; }
no_circle() { # CALLS-OR-INCLUDES
    grep -vFf <(listed | sed 's/$/ /') "$1" | cut -d ' ' -f 1,2 | tsort >/dev/null
}
# The directories of src/io, and its own files, are not circular either.
no_circle_in_io() {
    cut -d ' ' -f 1,2 "$work/calls" "$work/headers" | grep '^src/io/.* src/io/' |
        sed -E 's|src/io/([a-z]+)/[^ ]*|src/io/\1|g' | awk '$1 != $2' | tsort >/dev/null
}
still_there() { # each exception must close a circle
    local from to
    listed | while read -r from to; do
        grep -qF "$from $to " "$work/calls" || { echo "$from does not call $to: remove the line from tests/docs/circles.txt" && exit 1; }
        ! grep -vFf <(listed | grep -vxF "$from $to" | sed 's/$/ /') "$work/calls" | cut -d ' ' -f 1,2 | tsort >/dev/null 2>&1 ||
            { echo "$from calls $to without a circle: remove the line from tests/docs/circles.txt" && exit 1; }
    done
}

# Print the missing files that a page names, with or without a directory.
named_files() { # PAGE
    { grep -oE '`[A-Za-z0-9_./*]+\.(c|h|cu|cuh|sh|py|t|def|txt|mk)`' "$1" || :; } | tr -d '`' | sed '/NAME\|mine/d' | sort -u | {
        missing=0
        while read -r name; do
            case $name in
            */*) compgen -G "$name" || compgen -G "src/$name" || compgen -G "filters/$name" ;;
            *) find . -name build -prune -o -name "$name" -print -quit | grep . ;;
            esac >/dev/null || { echo "$name" && missing=1; }
        done
        [ $missing = 0 ]
    }
}

check "every source has an object" is_built
check "docs/design.md lists the allowed dependencies" has_rules
check "calls follow the allowed dependencies" only_allowed "$work/calls"
check "includes follow the allowed dependencies" only_allowed "$work/includes"
check "the program uses only the public headers" program_uses
check "calls are not circular" no_circle "$work/calls"
sed 's/^\([^ ]* [^ ]*\) .*/\1/' "$work/included" >"$work/headers"
check "includes are not circular" no_circle "$work/headers"
check "directories of src/io are not circular" no_circle_in_io
check "tests/docs/circles.txt has no stale lines" still_there
for page in README.md CONTRIBUTING.md docs/*.md; do
    check "the files that $page names exist" named_files "$page"
done
check_summary
