#!/usr/bin/env bash
# Run every command line in the documents and the help: tests/docs/doc_commands.sh BUILD. This script makes the files
# that they name; tests/docs/doc_commands.py finds and runs them; tests/docs/doc_commands.txt lists the exceptions.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=$(cd "${1:-build}" && pwd)
if ! command -v python3 >/dev/null; then
    skip 1 "the command lines of the documents: no python3 (Debian package python3)"
    check_summary
    exit
fi
export PATH=$build:$PATH LC_ALL=C
samples=$PWD/samples

make_fixtures() {
    mkdir -p photos/summer/lake photos/winter || return
    draw --photo 240 160 1 in.png && draw --photo 240 160 2 a.png && gpufilter smooth -q -k a.png b.png &&
        draw --grey --16 --photo 320 200 3 scan.png && gpufilter normalize -q scan.png scan.pgm &&
        cp a.png original.png && gpufilter smooth -q --stages enhance --gain 1 a.png compressed.jpg &&
        cp "$samples/ramp.pfm" depth.pfm && cp depth.pfm exposure.pfm && cp in.png page.png &&
        gpufilter smooth -q in.png in.ppm && cp in.ppm p.ppm &&
        truncate -s $((4096 * 3072 * 2 + 512)) scan.dat || return # sparse: zeros that use no disk space
        printf 'median radius=2\nsharpen\n' >steps.txt
        cp scan.png cells.png
        printf '3 3\n-2 -1 0\n-1 1 1\n0 1 2\n' >emboss.mat
    for i in 1 2 3 4 5 6 7 8 9; do
        draw --photo 80 60 "1$i" "photos/$(echo . summer winter summer/lake | cut -d ' ' -f $((i % 4 + 1)))/$i.png" || return
    done
}
mkdir "$work/fixtures" && cd "$work/fixtures" || exit
check "make the files that the documents name" make_fixtures
[ "$failed" -eq 0 ] || { check_summary; exit; }
cd "$OLDPWD" || exit
# A copy of the project without build products; the commands run in this copy.
mkdir "$work/tree"
for entry in * .[!.]*; do
    case $entry in .git | .deps | build | gpufilter) ;; *) cp -a "$entry" "$work/tree" ;; esac
done
python3 -B tests/docs/doc_commands.py "$build" "$work/fixtures" "$work/tree" >"$work/printed" 2>&1
code=$?
sed '$d' "$work/printed"
read -r p f s < <(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$work/printed")
[ $code -eq 0 ] || [ "${f:-0}" -gt 0 ] || { f=1 && tail -n 1 "$work/printed"; }
passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0})) skipped=$((skipped + ${s:-0}))
check_summary
