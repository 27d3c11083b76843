#!/usr/bin/env bash
# The documentation: tests/docs/docs.sh BUILD. Links have targets; generated pages equal the output of `make docs`;
# every picture equals the present output of its command: exactly, or for a plot, its curves to less than one point.
# The drawing of plots is not compared, because fonts and versions of cairo differ; the plots in docs/ therefore need
# no cairo here.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
gpufilter=$(cd "${1:-build}" && pwd)/gpufilter
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; then
    skip 1 "docs: no python3 of version 3.8 or later"
    check_summary
    exit
fi

mapfile -t pages < <(find . -name build -prune -o -name '.?*' -prune -o -name '*.md' -printf '%P\n' | LC_ALL=C sort)
check "more than 5 pages are found" [ ${#pages[@]} -gt 5 ]
check "all links have targets" python3 tests/docs/docs_links.py "${pages[@]}"

# Run `make docs` into a copy. It reads the list of filters from the program.
mkdir "$work/docs"
cp README.md "$work/README.md"
check "every command of the gallery runs" python3 docs/make_gallery.py --numbers "$gpufilter" "$work/docs" "$work/README.md"
if [ ! -e "$work/docs/gallery.md" ]; then
    check_summary
    exit
fi
check "README.md: the filters, see make docs" diff -u README.md "$work/README.md"
check "docs/gallery.md is up to date, see make docs" diff -u docs/gallery.md "$work/docs/gallery.md"

# Compare each picture.
while IFS=$'\t' read -r picture command; do
    case $picture in
    *.svg)
        log=
        case $command in *' --log-scale '*) log=log ;; esac
        check "docs/$picture shows the numbers of: $command" \
            python3 tests/docs/docs_plot.py "docs/$picture" "$work/docs/$picture.csv" $log
        ;;
    *) check "docs/$picture equals the output of: $command" "$gpufilter" compare "docs/$picture" "$work/docs/$picture" ;;
    esac
    check "docs/$picture has less than 150 kB" [ -n "$(find "docs/$picture" -size -150000c)" ]
    grep -qF "\"docs/$picture\"" README.md || continue
    check "README.md shows the command of docs/$picture" grep -qxF "    $command" README.md
done <"$work/docs/commands"
check "more than 10 pictures are compared" [ "$(wc -l <"$work/docs/commands")" -gt 10 ]
check "all pictures have less than 2.6 MB" [ "$(find docs/pictures -type f -printf '%s\n' | awk '{sum += $1} END {print sum}')" -lt 2600000 ]
python3 tests/docs/docs_links.py --pictures "${pages[@]}" | LC_ALL=C sort -u >"$work/shown"
check "every picture is used" diff <(grep '^docs/pictures/' "$work/shown") <(find docs/pictures -type f | LC_ALL=C sort)

check_summary
