#!/bin/sh
# Describe the sources of a release, with or without git: source.sh files|date|committed.
# files: print the names, NUL-terminated: the files tracked by git; without git, all files not matched by .gitignore.
# date: print the commit's time in seconds; without git, the modification time of CHANGELOG.md (all files of a release have it).
# committed: succeed if the tree equals the commit, or without git.
set -eu
cd "$(dirname "$0")/.."
tracked() { [ -n "$(git ls-files Makefile 2>/dev/null)" ]; }

case $1 in
files)
    if tracked; then
        git ls-files -z
    else
        set -- ! -path './.git' ! -path './.git/*'
        while read -r ignored; do
            case $ignored in
            /*/) set -- "$@" ! -path ".${ignored}*" ;;
            /*) set -- "$@" ! -path ".$ignored" ;;
            *) set -- "$@" ! -name "$ignored" ;;
            esac
        done <.gitignore
        find . ! -type d "$@" -printf '%P\0'
    fi | LC_ALL=C sort -z
    ;;
date)
    if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
        echo "$SOURCE_DATE_EPOCH"
    elif tracked; then
        git log -1 --format=%ct
    else
        stat -c %Y CHANGELOG.md
    fi
    ;;
committed) ! tracked || git diff --quiet HEAD ;;
*) exit 2 ;;
esac
