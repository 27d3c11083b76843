#!/usr/bin/env bash
# Every command line of the documents and the help is run: tests/docs/doc_commands.sh BUILD. Here are the files that they speak
# of; the rest is in tests/docs/doc_commands.py, and what is not run as it stands in tests/docs/doc_commands.txt.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=$(cd "${1:-build}" && pwd)
if ! command -v python3 >/dev/null; then
    skip 1 "the command lines of the documents: there is no python3 (Debian's package python3)"
    check_sum
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
        truncate -s $((4096 * 3072 * 2 + 512)) scan.dat || return # zeros, and no room on the disk
    for i in 1 2 3 4 5 6 7 8 9; do
        draw --photo 80 60 "1$i" "photos/$(echo . summer winter summer/lake | cut -d ' ' -f $((i % 4 + 1)))/$i.png" || return
    done
}
mkdir "$work/fixtures" && cd "$work/fixtures" || exit
check "the files that the documents speak of" make_fixtures
[ "$failed" -eq 0 ] || { check_sum; exit; }
cd "$OLDPWD" || exit
# The project without what was built: whatever a command does, it does to this copy.
mkdir "$work/tree"
for entry in * .[!.]*; do
    case $entry in .git | .deps | build | gpufilter) ;; *) cp -a "$entry" "$work/tree" ;; esac
done
python3 -B tests/docs/doc_commands.py "$build" "$work/fixtures" "$work/tree" >"$work/said" 2>&1
code=$?
sed '$d' "$work/said"
read -r p f s < <(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$work/said")
[ $code -eq 0 ] || [ "${f:-0}" -gt 0 ] || { f=1 && tail -n 1 "$work/said"; }
passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0})) skipped=$((skipped + ${s:-0}))
check_sum
