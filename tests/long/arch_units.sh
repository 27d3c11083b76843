#!/usr/bin/env bash
# Run the unit tests of a program for another processor under qemu: tests/long/arch_units.sh BUILD ARCH. BUILD/ARCH/run has a
# script for each test, which tests/run starts. Some tests need what qemu does not emulate, or what is not in a static build.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(realpath "$1/$2") qemu=qemu-$2
# Children with filters of system calls, children that share memory with their parent, and comparisons of times.
not_emulated='^test_(sandbox.*|stb.*|hostile_program|hostile_png_cost|inspect)$'
rm -rf "$build/run"
mkdir -p "$build/run/tests"
for file in tests/unit/*/test_*.c tests/unit/*/*/test_*.c tests/long/test_*.c; do
    name=$(basename "$file" .c) script="echo 'SKIP 1: not in a static build'"
    [ ! -e "$build/tests/$name" ] || script="exec $qemu $build/tests/$name"
    [[ ! $name =~ $not_emulated ]] || script="echo 'SKIP 1: $qemu does not emulate it'"
    printf '#!/bin/sh\n%s\n' "$script" >"$build/run/tests/$name"
    chmod +x "$build/run/tests/$name"
done
GF_TEST_NO_SANDBOX=1 GF_TEST_TIMEOUT=3600 exec tests/run -t check "$build/run" test_
