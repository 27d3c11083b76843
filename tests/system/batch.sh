#!/usr/bin/env bash
# Many files at full tilt: tests/system/batch.sh BUILD. Broken ones among them, two runs at once, few open files, and folders that
# cannot be written.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
. tests/support/batch_run.sh

named() { [ "$(grep -c '^gpufilter: in/.*: the file ends too early\|^gpufilter: in/.*pgm: ' want.log)" -eq 30 ] &&
    [ "$(grep '^gpufilter: ' want.log | sed 's/gpufilter: \(in[^:]*\):.*/\1/' | sort)" = "$(ls in/*/??3.pgm | sort)" ]; }
complete() { [ "$(find want -name '*.pgm' | wc -l)" -eq 270 ]; }
alone() { # every ninth, by itself
    for file in $(find want -name '*[19].pgm'); do
        gpufilter smooth "in/${file#want/}" alone.pgm --force && cmp alone.pgm "$file" || return 1
    done
}
check "30 of 300 fail: exit 1" [ $code -eq 1 ]
check "30 of 300 fail: all named, each once" named
check "30 of 300 fail: the sum" summary 270 30 0 want.log
check "30 of 300 fail: the others are there" complete
check "as each alone" alone
for threads in 1 3 16; do
    gpufilter smooth -R in --out-dir threads$threads --threads $threads -q 2>/dev/null
    check "the same with $threads threads" same threads$threads
done

# Two runs at once into one folder.
together() {
    gpufilter smooth -R in/1 -O both --threads 2 -q 2>/dev/null &
    gpufilter smooth -R in/2 -O both --threads 2 -q 2>/dev/null
    wait $!
    gpufilter smooth -R in/1 in/2 -O both --resume 2>sum
    grep -q '^0 done, [0-9]* failed, 7[0-9] skipped' sum
}
the_same() {
    rm -rf both
    gpufilter smooth -R in -O both --threads 1 "$@" -q 2>/dev/null &
    gpufilter smooth -R in -O both --threads 1 "$@" -q 2>/dev/null
    wait $!
    gpufilter smooth -R in -O both --resume 2>sum
    summary 0 30 270 sum && same both
}
check "two runs at once" together
check "two runs at once, the same" the_same
check "two runs at once, the same, forced" the_same --force

# Fewer files may be open than threads would have.
few_files() {
    (ulimit -n 64 && gpufilter smooth -R in -O few --threads 64 2>sum)
    summary 270 30 0 sum && same few
}
check "few open files" few_files

# Folders that may not be read or written. Root may everything, so another user tries.
if [ "$(id -u)" -ne 0 ]; then
    other() { "$@"; }
elif setpriv --reuid=65534 --clear-groups gpufilter --version >/dev/null 2>&1; then
    other() { setpriv --reuid=65534 --clear-groups "$@"; }
else
    other() { return 127; }
fi
chmod 755 .
if other true; then
    mkdir -m 555 closed && mkdir -m 777 open && mkdir -p -m 755 part/ok part/secret && cp in/1/001.pgm part/ok
    chmod 000 part/secret
    mkdir -m 777 half && mkdir -m 555 half/ok
    closed() { other gpufilter smooth in/1/001.pgm in/1/008.pgm -O closed 2>sum
        [ $? -eq 1 ] && grep -q '^0 done, [12] failed, 0 skipped' sum && [ -z "$(ls -A closed)" ] &&
            [ "$(grep -c 'cannot create a file in its directory: Permission denied; no more files are started' sum)" -eq 1 ]; }
    below() { other gpufilter smooth in/1/001.pgm -O closed/new 2>sum
        [ $? -eq 1 ] && grep -q '^gpufilter: closed/new: cannot create the folder: Permission denied$' sum; }
    secret() { other gpufilter smooth -R part -O open 2>sum
        [ $? -eq 1 ] && grep -q '^gpufilter: part/secret: cannot read the folder: ' sum && summary 1 1 0 sum; }
    partly() { other gpufilter smooth -R part in/1/001.pgm -O half 2>sum
        [ $? -eq 1 ] && summary 1 2 0 sum; }
    above() { mkdir -p two/no two/ok && cp in/1/001.pgm two/no && cp in/1/001.pgm two/ok
        mkdir -m 755 over && mkdir -m 777 over/ok && other gpufilter smooth -R two -O over 2>sum
        [ $? -eq 1 ] && summary 1 1 0 sum; }
    dry() { other gpufilter smooth in/1/001.pgm in/1/008.pgm -O closed --dry-run 2>sum
        [ $? -eq 1 ] && grep -q '^gpufilter: closed: cannot write to the folder: Permission denied$' sum &&
            grep -q '^dry run: 0 to do, 1 failed, 0 skipped$' sum; }
    unsearched() { mkdir -p blind/d/sub && cp in/1/001.pgm blind/d/sub && cp in/1/008.pgm blind && chmod 644 blind/d
        mkdir -m 777 seen && other gpufilter smooth -R blind -O seen 2>sum
        [ $? -eq 1 ] && grep -q '^gpufilter: blind/d/sub: cannot stat: Permission denied$' sum && summary 1 1 0 sum; }
    check "a folder that may not be written" closed
    check "a folder in it" below
    check "a folder that may not be read" secret
    check "a folder below that may not be written" partly
    check "a folder below one that may not be written" above
    check "a dry run into a folder that may not be written" dry
    check "a folder that may be read, but not searched" unsearched
    chmod 755 part/secret blind/d
else
    skip 1 "folders without permission: there is no other user to be"
fi

check_sum
