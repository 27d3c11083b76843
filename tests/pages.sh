#!/usr/bin/env bash
# The manual pages: tests/pages.sh BUILD. They tell what the program's help and the library's header tell, in a
# form that mandoc and groff have nothing to say against, and that fits into 80 columns.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. tests/check.sh
build=${1:-build}
man=$build/man
export LC_ALL=C

names() { "$build/gpufilter" help | awk '/^(Filters|Commands):/ {on = 1; next} /^$/ {on = 0} on {print $1}'; }
pages() { for page in "$man"/*.[13]; do basename "$page"; done; }
silent() { # COMMAND...: has nothing to say
    local said
    said=$("$@" 2>&1)
    echo "$said"
    [ -z "$said" ]
}
render() { mandoc -T ascii -O width=78 "$1" | sed 's/.\x08//g'; }

# ---- which there are ------------------------------------------------------------------------------

check "a page for each filter and command, and two more" \
    diff <(names | sed 's/.*/gpufilter-&.1/' | cat - <(printf 'gpufilter.%s\n' 1 3) | sort) <(pages | sort)
same_again() { diff "$man/$1" <(TZ=Pacific/Auckland SOURCE_DATE_EPOCH=1 "$build/pages" man "$1"); }
for page in $(pages); do check "$page is made the same again" same_again "$page"; done
check "the short name of a page" cmp "$man/gpufilter-hist.1" <("$build/pages" man hist)
references() { grep -h '^\.Xr gpufilter' "$man"/*.[13] | awk '{print $2 "." $3}' | sort -u | comm -23 - <(pages | sort); }
check "each page that another one names is there" silent references
refuses() { "$build/pages" "$@" >"$work/out" 2>&1; [ $? -eq 2 ] && grep -q '^Usage' "$work/out"; }
check "no such page" refuses man nothing
check "no such shell" refuses csh
check "nothing asked for" refuses
full() { ! "$build/pages" man >/dev/full 2>/dev/null; }
check "a full disk is a failure" full
elsewhere() { ! (cd "$work" && "$OLDPWD/$build/pages" man 2>"$work/err") && grep -q 'src/pages\|CHANGELOG' "$work/err"; }
[[ $build = /* ]] || check "in another folder" elsewhere

# ---- their form -----------------------------------------------------------------------------------

if command -v mandoc >/dev/null 2>&1; then
    wide() { render "$1" | awk 'length($0) > 80'; }
    for page in "$man"/*.[13]; do
        check "mandoc has nothing against ${page##*/}" silent mandoc -T lint -W warning "$page"
        check "80 columns: ${page##*/}" silent wide "$page"
    done
else
    skip 1 "pages: no mandoc"
fi
if command -v groff >/dev/null 2>&1 && groff -mdoc -z -Tascii "$man/gpufilter.1" 2>/dev/null; then
    for page in "$man"/*.[13]; do check "groff has nothing against ${page##*/}" silent groff -mdoc -ww -z -Tutf8 "$page"; done
else
    skip 1 "pages: no groff with mdoc"
fi
if man --warnings=w -l "$man/gpufilter.1" >/dev/null 2>&1; then # man-db, and it formats pages here
    warnings() { { MANWIDTH=80 man --warnings=w -l "$1" >/dev/null; } 2>&1; }
    for page in "$man"/*.[13]; do check "man has nothing against ${page##*/}" silent warnings "$page"; done
else
    skip 1 "pages: no man-db"
fi

# ---- what they say --------------------------------------------------------------------------------

# Blanks as they may be anywhere: a page may also begin a line behind a hyphen.
flat() { tr -s ' ' | sed 's/- /-/g'; }
# "-r, --radius R" and all that is told about it, in a line.
paragraphs() { # FILE
    render "$1" | awk '
        /^     -/ {print text; text = ""; on = 1}
        /^ {0,4}[^ ]/ || /^[^ ]/ {print text; text = ""; on = 0}
        on {text = text $0}
        END {print text}' | flat
}
# Looks for each line of help_options.awk in the paragraphs.
tells_options() { # NAME
    local head text range words fallback found want missing=0 count=0
    paragraphs "$man/gpufilter-$1.1" >"$work/paragraphs"
    while IFS=$'\x1f' read -r head _ _ text range words fallback; do
        count=$((count + 1))
        found=$(grep -iF -- "$head $text" "$work/paragraphs")
        for want in "${range:+From $range}" "${words:+of ${words%, *}}" "${words:+${words##*, }}" \
            "${fallback:+default is $fallback.}"; do
            if [[ -z $found || $found != *"$want"* ]]; then
                echo "$head: '$text' '$want' is not in the page of $1"
                missing=1
            fi
        done
    done < <("$build/gpufilter" help "$1" | awk -f tests/tools/help_options.awk | tr '\t' '\037' | flat)
    [ $missing -eq 0 ] && [ $count -gt 2 ]
}
tells_lines() { # PAGE: all lines of standard input
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
        check "options of $name" tells_options "$name"
        check "examples of $name" tells_lines "gpufilter-$name.1" < <(examples "$name")
    done
    # What a filter shares with others is in groups behind its own.
    shared() { for name in $(names); do "$build/gpufilter" help "$name" | sed '/^What it computes:/,/^$/d; /^Options:/,/^$/d'; done |
        awk -f tests/tools/help_options.awk | cut -f 1 | sort -u; }
    check "shared options in gpufilter(1)" tells_lines gpufilter.1 < <(shared)
    section() { render "$man/$1" | awk -v "head=$2" '/^[^ ]/ {on = $0 == head; next} on'; } # PAGE HEADING
    # Of the library's statuses, and of signals.
    codes() { sed -nE '/^typedef enum gf_status/,/^}/s/.* = ([0-9]+).*/\1/p' src/gpufilter.h && echo '128 + n'; }
    exits() { diff <(codes) <(section "$1" 'EXIT STATUS' | sed '/^$/,$d' | sed -nE 's/^     ([0-9][0-9n +]*[0-9n]|[0-9]) .*/\1/p'); }
    for page in gpufilter.1 $(names | sed 's/.*/gpufilter-&.1/'); do check "exit codes in $page" exits "$page"; done
    # What calls of getenv name, or the table just before them.
    variables() { grep -rhB 4 'getenv(' src/*.c src/cli src/engine src/io | grep -oE '"[A-Z][A-Z0-9_]{2,}"' | tr -d '"' | sort -u; }
    check "variables of the environment" diff <(variables) \
        <(section gpufilter.1 ENVIRONMENT | sed -nE 's/^     ([A-Z_]+(, [A-Z_]+)*)(  .*)?$/\1/p' | tr -d ' ' | tr , '\n' | sort -u)
    check "backends" tells_lines gpufilter.1 < <("$build/gpufilter" help smooth |
        sed -n '/--backend/,/default/p' | tr -d '\n' | grep -oE '\([a-z, ]*;' | tr -d '(;,' | tr -s ' ' '\n')
    functions() { sed '/^typedef/d' src/gpufilter.h | grep -o '\bgf_[a-z_]*(' | sort -u; }
    check "functions in gpufilter(3)" tells_lines gpufilter.3 < <(functions)
    types() { grep -oE '^} gf_[a-z_]*' src/gpufilter.h | cut -c 3-; }
    check "types in gpufilter(3)" tells_lines gpufilter.3 < <(types)
    constants() { sed -n '/^typedef enum/,/^}/p' src/gpufilter.h | grep -oE '\bGF_[A-Z0-9_]+' | sort -u; }
    check "constants in gpufilter(3)" tells_lines gpufilter.3 < <(constants)
    # Whole, but for marks and capitals.
    bare() { tr '\n' ' ' | tr -d '`' | sed 's/()//g' | tr '[:upper:]' '[:lower:]' | flat; }
    comments() {
        awk 'BEGIN {RS = "\\*/"} sub(/.*\/\*/, "") {
            gsub(/\n *\* ?/, " "); sub(/^ *---- .* -----*/, ""); sub(/^ gpufilter: [^.]*\./, ""); gsub(/\n/, " "); print}' src/gpufilter.h
    }
    tells_comments() {
        render "$man/gpufilter.3" | bare >"$work/flat"
        local line missing=0 count=0
        while IFS= read -r line; do
            count=$((count + 1))
            grep -qF -- "$(bare <<<"$line" | sed 's/^ //; s/ $//')" "$work/flat" || { echo "not in gpufilter.3: $line" && missing=1; }
        done < <(comments)
        [ $missing -eq 0 ] && [ $count -gt 100 ]
    }
    check "all comments of the header in gpufilter(3)" tells_comments
else
    skip 1 "comments in gpufilter(3): no mandoc"
fi

# ---- the program in gpufilter(3) ------------------------------------------------------------------

sanitized=$(grep -o -- '-fsanitize=[a-z,]*' "$build/config" | head -n 1)
example() {
    # shellcheck disable=SC2086
    cc -std=c11 -Wall -Wextra -Wpedantic -Werror $sanitized -I "$build/include" src/pages/example/smooth.c \
        -o "$work/example" -L "$build" -lgpufilter -Wl,-rpath,"$(cd "$build" && pwd)" &&
        "$work/example" samples/cutout.png "$work/a.pam" &&
        "$build/gpufilter" smooth --axis xy samples/cutout.png "$work/b.pam" &&
        cmp "$work/a.pam" "$work/b.pam"
}
check "the example compiles, and does what it says" example

check_sum
