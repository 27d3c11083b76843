#!/bin/sh
# What a release is made of: source.sh files|date|committed, also where it came without its history.
# files: their names, each with a NUL behind it. What git knows of; without git all but what .gitignore names.
# date: that of the commit, in seconds; without git that of the change log, to which every file of a release is dated.
# committed: succeeds if nothing differs from the commit, or nobody knows.
set -eu
cd "$(dirname "$0")/.."
known() { [ -n "$(git ls-files Makefile 2>/dev/null)" ]; }

case $1 in
files)
    if known; then
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
    elif known; then
        git log -1 --format=%ct
    else
        stat -c %Y CHANGELOG.md
    fi
    ;;
committed) ! known || git diff --quiet HEAD ;;
*) exit 2 ;;
esac
