#!/usr/bin/env bash
# Write the tarball of a release: dist.sh VERSION FILE. Reproducible: the same files give the same bytes.
set -euo pipefail
name=gpufilter-$1 file=$2
here=${0%/*}
date=$("$here/source.sh" date)
"$here/source.sh" committed || echo "note: $file contains uncommitted changes" >&2
mkdir -p "$(dirname "$file")"
trap 'rm -f "$file.part"' EXIT
"$here/source.sh" files |
    LC_ALL=C tar --create --directory="$here/.." --no-recursion --null --format=ustar --mtime="@$date" --owner=root:0 --group=root:0 \
        --numeric-owner --mode=u=rwX,go=rX --transform="flags=r;s,^,$name/," --files-from=- |
    gzip -9n >"$file.part"
mv "$file.part" "$file"
