#!/usr/bin/env bash
# Compare resize with Pillow, bit for bit, through the Python package: tests/system/pillow.sh BUILD [IMAGES].
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=$(cd "${1:-build}" && pwd)
case ${GF_TEST_TIER:-test} in check) images=200 ;; long) images=5000 ;; *) images=600 ;; esac
python=
for name in python3 /usr/bin/python3; do # the first python3 in PATH may have no packages
    [ -n "$python" ] || ! "$name" -c 'import numpy, PIL' 2>/dev/null || python=$name
done
reason=
[ -n "$python" ] || reason="no Pillow, or no NumPy, for python3"
! grep -q -- -fsanitize "$build/config" || reason="Python cannot load a library with sanitizers"
if [ -n "$reason" ]; then
    skip 1 "$reason"
    check_summary
    exit
fi
export PYTHONPATH=$work GPUFILTER_LIBRARY=$build/libgpufilter.so
mkdir "$work/gpufilter" && cp python/gpufilter/*.py "$work/gpufilter" &&
    "$python" -B python/generate.py "$build/libgpufilter.so" "$work/gpufilter/_functions.py" &&
    "$python" -B tests/system/pillow.py "${2:-$images}" "${GF_TEST_SEED:-1}"
