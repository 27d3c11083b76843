#!/usr/bin/env bash
# Test a Python wheel: try-wheel.sh WHEEL [PROGRAM]
#
# Installs the wheel with pip in a new environment, checks its metadata and libraries, runs the command gpufilter, the first
# example of docs/python.md and the tests of python/tests. With PROGRAM, the outputs of the command must have the same
# bytes as those of PROGRAM. Reads the interpreter from PYTHON. Requires venv and a package index.
set -euo pipefail
[ $# -ge 1 ] || { sed -n 's/^# \{0,1\}//p' "$0" | sed -n 2,7p; exit 2; }
wheel=$(realpath "$1")
program=${2:+$(realpath "$2")}
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
unset GPUFILTER_LIBRARY LD_LIBRARY_PATH PYTHONPATH
title() { printf '\n== %s\n' "$*"; }

title "size"
stat -c '%n: %s bytes' "$wheel"

title "pip install and pip check"
"${PYTHON:-python3}" -m venv "$work/env"
"$work/env/bin/pip" install -q pytest "$wheel"
"$work/env/bin/pip" check
"$work/env/bin/pip" list

title "twine check and auditwheel show"
"${PYTHON:-python3}" -m venv "$work/tools"
"$work/tools/bin/pip" install -q twine 'auditwheel>=6'
"$work/tools/bin/twine" check --strict "$wheel"
"$work/tools/bin/auditwheel" show "$wheel" | tee "$work/show"
platform=$(grep -o 'manylinux_[0-9_]*[a-z0-9_]*' <<<"${wheel##*/}")
grep -qF "\"$platform\"" "$work/show" # the tag of the name is the one of its libraries

title "command"
gpufilter=$work/env/bin/gpufilter
cd "$work"
"$gpufilter" --version
"$gpufilter" devices
"$gpufilter" verify --samples 4M
"$gpufilter" smooth --keep-brightness --axis xy "$root/samples/scene.png" out.png
"$gpufilter" compare out.png "$root/golden/scene-keep-xy.png"
code=0
"$gpufilter" smooth "$root/samples/scene.png" out.png 2>/dev/null || code=$?
[ $code -eq 1 ] # the output exists: the exit code is the program's
if [ -n "$program" ]; then
    "$program" smooth --keep-brightness --axis xy "$root/samples/scene.png" built.png
    cmp out.png built.png
    echo "equal to the output of $program"
fi

title "first example of docs/python.md"
awk '/^```python/ {inside = 1; next} /^```/ && inside {exit} inside' "$root/docs/python.md" >example.py
if [ -s example.py ]; then
    ln -s "$root/samples" samples
    cat example.py
    "$work/env/bin/python" example.py
else
    echo "none"
fi

title "tests"
cd "$root"
GPUFILTER_PROGRAM=$gpufilter "$work/env/bin/pytest" -q -p no:cacheprovider --basetemp="$work/tests" python/tests
