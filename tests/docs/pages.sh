#!/usr/bin/env bash
# The manual pages: tests/docs/pages.sh BUILD. They contain the text of the program's help, mandoc and groff accept
# them without warnings, and they fit into 80 columns.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=${1:-build}
man=$build/man
export LC_ALL=C

names() { "$build/gpufilter" help | awk '/^(Filters|Commands):/ {on = 1; next} /^$/ {on = 0} on {print $1}'; }
pages() { (cd "$man" && printf '%s\n' *.1); }
silent() { # COMMAND...: must print nothing
    local printed
    printed=$("$@" 2>&1)
    echo "$printed"
    [ -z "$printed" ]
}
render() { mandoc -T ascii -O width=78 "$1" | sed 's/.\x08//g'; }

# ---- list of pages ---------------------------------------------------------------------------------

check "one page per filter and command, and gpufilter(1)" \
    diff <(names | sed 's/.*/gpufilter-&.1/' | cat - <(echo gpufilter.1) | sort) <(pages | sort)
references() { grep -h '^\.Xr gpufilter' "$man"/*.1 | awk '{print $2 "." $3}' | sort -u | comm -23 - <(pages | sort); }
check "every page named by another page exists" silent references
same_again() {
    local page day
    day=$(sed -n 's/^\.Dd //p' "$man/gpufilter.1")
    for page in $("$build/pages"); do "$build/pages" "$page" "$day" | cmp - "$build/$page" || return; done
}
check "generated again, pages and completions are identical" same_again
all() { diff <("$build/pages" | sort) <(cd "$build" && find man completions -type f ! -name made | sort); }
check "the list of pages and completions" all
unknown() { ! "$build/pages" man/nothing.1 today >"$work/out" 2>&1 && grep -q '^pages: man/nothing.1: No such file' "$work/out"; }
check "an unknown page" unknown
if [ -c /dev/full ]; then
    full() { ! "$build/pages" man/gpufilter.1 today >/dev/full 2>"$work/out" && grep -q '^pages: standard output: No space' "$work/out"; }
    check "a full disk" full
fi

# ---- form -----------------------------------------------------------------------------------------

if command -v mandoc >/dev/null 2>&1; then
    wide() { render "$1" | awk 'length($0) > 80'; }
    for page in "$man"/*.1; do
        check "mandoc: ${page##*/}" silent mandoc -T lint -W warning "$page"
        check "80 columns: ${page##*/}" silent wide "$page"
    done
else
    skip 1 "pages: no mandoc"
fi
if command -v groff >/dev/null 2>&1 && groff -mdoc -z -Tascii "$man/gpufilter.1" 2>/dev/null; then
    for page in "$man"/*.1; do check "groff: ${page##*/}" silent groff -mdoc -ww -z -Tutf8 "$page"; done
else
    skip 1 "pages: no groff with mdoc"
fi
if man --warnings=w -l "$man/gpufilter.1" >/dev/null 2>&1; then # man-db is installed and formats pages
    warnings() { { MANWIDTH=80 man --warnings=w -l "$1" >/dev/null; } 2>&1; }
    for page in "$man"/*.1; do check "man: ${page##*/}" silent warnings "$page"; done
else
    skip 1 "pages: no man-db"
fi

# ---- contents -------------------------------------------------------------------------------------

# Normalize blanks: a page may also break a line after a hyphen.
flat() { tr -s ' ' | sed 's/- /-/g'; }
# Print "-r, --radius R" and its description on one line.
paragraphs() { # FILE
    render "$1" | awk '
        /^     -/ {print text; text = ""; on = 1}
        /^ {0,4}[^ ]/ || /^[^ ]/ {print text; text = ""; on = 0}
        on {text = text $0}
        END {print text}' | flat
}
# Find each line of help_options.awk in the paragraphs.
describes_options() { # NAME
    local head text range words fallback found want missing=0 count=0
    paragraphs "$man/gpufilter-$1.1" >"$work/paragraphs"
    while IFS=$'\x1f' read -r head _ _ text range words fallback; do
        count=$((count + 1))
        found=$(grep -iF -- "$head $text" "$work/paragraphs")
        for want in "${range:+Range: $range}" "${words:+of ${words%, *}}" "${words:+${words##*, }}" \
            "${fallback:+efault: $fallback.}"; do
            if [[ -z $found || $found != *"$want"* ]]; then
                echo "$head: '$text' '$want' is not in the page of $1"
                missing=1
            fi
        done
    done < <("$build/gpufilter" help "$1" | awk -f tests/support/tools/help_options.awk | tr '\t' '\037' | flat)
    [ $missing -eq 0 ] && [ $count -gt 2 ]
}
contains_lines() { # PAGE: must contain all lines of standard input
    render "$man/$1" | tr '\n' ' ' | flat >"$work/flat"
    local line missing=0 count=0
    while IFS= read -r line; do
        count=$((count + 1))
        grep -qF -- "$(flat <<<"$line")" "$work/flat" || { echo "not in $1: $line" && missing=1; }
    done
    [ $missing -eq 0 ] && [ $count -gt 0 ]
}
examples() { "$build/gpufilter" help "$1" | sed -n '/^Examples:/,$s/^  //p'; }
if command -v mandoc >/dev/null 2>&1; then
    for name in $(names); do
        check "options of $name" describes_options "$name"
        check "examples of $name" contains_lines "gpufilter-$name.1" < <(examples "$name")
    done
    # Options that several filters share are described in groups after the filter's own options.
    shared() { for name in $(names); do "$build/gpufilter" help "$name" | sed '/^Filter options:/,/^$/d; /^Options:/,/^$/d'; done |
        awk -f tests/support/tools/help_options.awk | cut -f 1 | sort -u; }
    check "shared options in gpufilter(1)" contains_lines gpufilter.1 < <(shared)
    section() { render "$man/$1" | awk -v "head=$2" '/^[^ ]/ {on = $0 == head; next} on'; } # PAGE HEADING
    # The library's statuses, and signals.
    codes() { sed -nE '/^typedef enum gf_status/,/^}/s/.* = ([0-9]+).*/\1/p' src/gpufilter.h && echo '128 + n'; }
    exits() { diff <(codes) <(section "$1" 'EXIT STATUS' | sed '/^$/,$d' | sed -nE 's/^     ([0-9][0-9n +]*[0-9n]|[0-9]) .*/\1/p'); }
    for page in $(pages); do check "exit codes in $page" exits "$page"; done
    # The names passed to getenv, or in the table before the call.
    variables() { grep -rhB 4 'getenv(' src/*.c src/cli src/engine src/io src/mpi | grep -oE '"[A-Z][A-Z0-9_]{2,}"' | tr -d '"' | sort -u; }
    check "environment variables" diff <(variables) \
        <(section gpufilter.1 ENVIRONMENT | sed -nE 's/^     ([A-Z_]+(, [A-Z_]+)*)(  .*)?$/\1/p' | tr -d ' ' | tr , '\n' | sort -u)
    check "backends" contains_lines gpufilter.1 < <("$build/gpufilter" help smooth |
        sed -n '/--backend/,/default/p' | tr -d '\n' | grep -oE '\([a-z, ]*;' | tr -d '(;,' | tr -s ' ' '\n')
else
    skip 1 "contents of pages: no mandoc"
fi

check_summary
