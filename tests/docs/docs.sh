#!/usr/bin/env bash
# The documentation: tests/docs/docs.sh BUILD. Links lead somewhere; generated pages are what `make docs` would write; every
# picture is what the command beside it makes now: to the pixel, or of a plot, its curves to less than a point. How
# cairo draws a plot is not compared (fonts and versions differ), so the plots in docs/ need no cairo here.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
gpufilter=$(cd "${1:-build}" && pwd)/gpufilter
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; then
    skip 1 "docs: python3 is not here, or older than 3.8"
    check_sum
    exit
fi

mapfile -t pages < <(find . -name build -prune -o -name '.?*' -prune -o -name '*.md' -printf '%P\n' | LC_ALL=C sort)
check "pages are found" [ ${#pages[@]} -gt 5 ]
check "links lead somewhere" python3 tests/docs/docs_links.py "${pages[@]}"

# What `make docs` would write. It takes the list of filters from the program.
mkdir "$work/docs"
cp README.md "$work/README.md"
check "every command of the gallery runs" python3 docs/make_gallery.py --numbers "$gpufilter" "$work/docs" "$work/README.md"
if [ ! -e "$work/docs/gallery.md" ]; then
    check_sum
    exit
fi
check "README.md: the filters, see make docs" diff -u README.md "$work/README.md"
check "docs/gallery.md is up to date, see make docs" diff -u docs/gallery.md "$work/docs/gallery.md"

# Of each picture.
while IFS=$'\t' read -r picture command; do
    case $picture in
    *.svg)
        log=
        case $command in *' --log-scale '*) log=log ;; esac
        check "docs/$picture shows these numbers: $command" \
            python3 tests/docs/docs_plot.py "docs/$picture" "$work/docs/$picture.csv" $log
        ;;
    *) check "docs/$picture is what is made by: $command" "$gpufilter" compare "docs/$picture" "$work/docs/$picture" ;;
    esac
    check "docs/$picture is small" [ -n "$(find "docs/$picture" -size -150000c)" ]
    grep -qF "\"docs/$picture\"" README.md || continue
    check "README.md: docs/$picture has its command" grep -qxF "    $command" README.md
done <"$work/docs/commands"
check "pictures were compared" [ "$(wc -l <"$work/docs/commands")" -gt 10 ]
check "all together are" [ "$(find docs/pictures -type f -printf '%s\n' | awk '{sum += $1} END {print sum}')" -lt 1500000 ]
python3 tests/docs/docs_links.py --pictures "${pages[@]}" | LC_ALL=C sort -u >"$work/shown"
check "none is left over" diff <(grep '^docs/pictures/' "$work/shown") <(find docs/pictures -type f | LC_ALL=C sort)

check_sum
