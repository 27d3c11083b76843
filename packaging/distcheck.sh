#!/usr/bin/env bash
# Test a release tarball: distcheck.sh VERSION TARBALL. Unpack it without git, build without CUDA, run the demo and some
# tests, install, uninstall and clean; the source tree must then be unchanged.
set -euo pipefail
name=gpufilter-$1
tarball=$(realpath "$2")
unset MAKEFLAGS MFLAGS MAKELEVEL BUILD PREFIX DESTDIR SAN MPI
export CUDA=0
work=$(mktemp -d)
chmod 755 "$work" # one test installs as another user
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" && printf '#!/bin/sh\nexit 127\n' >"$work/bin/git" && chmod 755 "$work/bin/git"
PATH=$work/bin:$PATH

tar xzf "$tarball" -C "$work"
cd "$work/$name"
tree() { find "$1" \( -type f -printf '%M %p ' -exec sha256sum {} + \) -o \( -type l -printf '%p -> %l\n' \) | sort; }
tree . >"$work/source"

jobs=-j$(nproc)
make --no-print-directory "$jobs" demo
build/gpufilter compare build/demo/scene.png golden/scene-keep-xy.png
units=(build/tests/test_settings build/tests/test_smooth_golden build/tests/test_equality)
make --no-print-directory "$jobs" "${units[@]}" build/tests/list_cases build/shared/gpufilter
for unit in "${units[@]}"; do GF_TEST_ROUNDS=1 "$unit"; done
for script in system/golden system/transcripts docs/library system/install system/dist; do "tests/$script.sh" build; done

mkdir -p "$work/root/usr/share/man/man1" && echo other >"$work/root/usr/share/man/man1/other.1"
tree "$work/root" >"$work/before"
make --no-print-directory install PREFIX=/usr DESTDIR="$work/root"
"$work/root/usr/bin/gpufilter" hist samples/scene.png --bins 4
make --no-print-directory uninstall PREFIX=/usr DESTDIR="$work/root"
diff "$work/before" <(tree "$work/root")

make --no-print-directory clean
diff "$work/source" <(tree .)
echo "$tarball: passed"
