#!/usr/bin/env bash
# The library as others meet it: tests/library.sh BUILD. What is exported, and the header;
# tests/install.sh has what is installed, and a program of one's own against it.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. tests/check.sh
build=${1:-build}

# Every symbol that is exported is declared in the header, and the other way round.
exported() { nm -D --defined-only "$build/libgpufilter.so" | awk '$2 ~ /[TDBR]/ {print $3}' | sort; }
declared() { sed '/^typedef/d' src/gpufilter.h | grep -o '\bgf_[a-z_]*(' | tr -d '(' | sort -u; }
check "exported symbols are those of the header" diff <(declared) <(exported)

# The program on the shared library gives what the program on the static one does.
same_from_shared() {
    "$build/gpufilter" smooth --backend cpu samples/cutout.png "$work/a.pam" &&
        "$build/gpufilter-shared" smooth --backend cpu samples/cutout.png "$work/b.pam" &&
        cmp "$work/a.pam" "$work/b.pam"
}
check "the program on the shared library" same_from_shared

if command -v c++ >/dev/null 2>&1; then
    check "the header in C++" c++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -x c++ src/gpufilter.h
else
    skip 1
fi

check_sum
