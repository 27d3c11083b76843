#!/usr/bin/env bash
# What programs are compiled against: tests/system/abi.sh BUILD [write]. The exported functions, and the sizes, members and
# values of the public structs and enums must be those of tests/system/abi.txt, which `write` (make abi) writes anew.
# What src/gpufilter_tools.h declares is exported, too, for our own program, and may change.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=${1:-build}

# The header without comments and what it includes, so that its types keep their names. Statements end with ";".
plain() {
    sed -e '/^#include/d' -e 's/^#define GF_API .*/#define GF_API GF_API/' src/gpufilter.h | cc -E -P -x c - |
        tr '\n' ' ' | tr -s ' ' | sed 's/; /;/g'
}

# A program that prints structs and enums: for each member where it lies, its bytes, and how it is declared.
probe() {
    printf '#include "gpufilter.h"\n#include <stdio.h>\nint main(void) {\n'
    plain | awk -v RS=';' '
    function member(text,    base, name, parts, n, i) {
        name = text
        if (match(text, /\(\*[a-z_]+\)/)) { # a pointer to a function
            show(text, substr(text, RSTART + 2, RLENGTH - 3))
            return
        }
        n = split(text, parts, /, */)
        base = parts[1]
        sub(/\**[a-z_0-9]+(\[.*\])?$/, "", base)
        parts[1] = substr(parts[1], length(base) + 1)
        for (i = 1; i <= n; i++) {
            name = parts[i]
            gsub(/^\**|\[.*/, "", name)
            show(base parts[i], name)
        }
    }
    function show(text, name) {
        printf "printf(\"  %%4zu %%5zu  %s\\n\", offsetof(%s, %s), sizeof(((%s *)0)->%s));\n", text, type, name, type, name
    }
    /^ *typedef enum/ {
        type = $3
        printf "printf(\"\\nenum %s: %%zu bytes\\n\", sizeof(%s));\n", type, type
        gsub(/.*[{]|[}].*/, "")
        n = split($0, names, ",")
        for (i = 1; i <= n; i++) {
            sub(/=.*/, "", names[i])
            gsub(/ /, "", names[i])
            if (names[i] != "") printf "printf(\"  %%4d  %s\\n\", (int)%s);\n", names[i], names[i]
        }
        type = ""
        next
    }
    /^ *typedef struct [a-z_]+ [{]/ {
        type = $3
        printf "printf(\"\\nstruct %s: %%zu bytes\\n\", sizeof(%s));\n", type, type
        sub(/^[^{]*[{] */, "")
    }
    /^ *[}]/ { type = "" }
    type { member($0) }
    /^typedef struct [a-z_]+ [a-z_]+$/ { printf "printf(\"\\nstruct %s: not public\\n\");\n", $3 }
    /^typedef .*\)$/ { printf "printf(\"\\n%s\\n\");\n", $0 }'
    printf 'return 0;\n}\n'
}

functions() {
    plain | tr ';' '\n' | sed -n 's/^ *GF_API //p' >"$work/declared"
    nm -D --defined-only "$build/libgpufilter.so" | awk '{print $3}' | LC_ALL=C sort | while read -r name; do
        grep -qE "^GF_API .*[ *]$name\(" src/gpufilter_tools.h && continue
        grep -E "[ *]$name\(" "$work/declared" || echo "$name: exported, and not in the header"
    done
}

interface() {
    echo "# What programs are compiled against, on 64-bit machines. Written by tests/system/abi.sh, which says what to do about changes."
    readelf -d "$build/libgpufilter.so" | sed -n 's/.*soname: \[\(.*\)\]/\nsoname \1/p'
    sed -nE 's/^#define GF_VERSION_(MAJOR|MINOR) ([0-9]+)$/\2/p' src/gpufilter.h | paste -sd . | sed 's/^/version /'
    printf '\nfunctions\n'
    functions | sed 's/^/  /'
    probe >"$work/probe.c" && cc -std=c11 -Wall -Werror -Isrc "$work/probe.c" -o "$work/probe" && "$work/probe"
}

if [ "$(getconf LONG_BIT)" != 64 ]; then
    skip 1 "tests/system/abi.txt is about 64-bit machines"
    check_sum
    exit
fi
interface >"$work/now" || exit
if [ "${2:-}" = write ]; then
    cp "$work/now" tests/system/abi.txt
    exit
fi
if diff -u tests/system/abi.txt "$work/now" >"$work/difference"; then
    passed=1
else
    failed=1
    echo "FAIL programs are compiled against something else than tests/system/abi.txt says:"
    cat "$work/difference"
    cat <<'END'
If that was not meant, undo it. Otherwise:
  only new functions, structs, or values at the end of an enum:
      programs that are there go on working. Say what is new in CHANGELOG.md.
  anything changed, moved or gone (a member more makes a struct larger, and is that):
      programs that are there would break. Since the last release GF_VERSION_MINOR in src/gpufilter.h must have gone up,
      from 1.0 on GF_VERSION_MAJOR, which is the soname. Say in CHANGELOG.md what must be compiled anew.
Then `make abi` writes tests/system/abi.txt anew; it goes into the same commit.
END
fi
check_sum
