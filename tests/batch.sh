#!/usr/bin/env bash
# Many files at full tilt: tests/batch.sh BUILD. Broken ones among them, runs that are killed and resumed, two
# runs at once, folders that cannot be written, and the bar on a terminal.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. tests/check.sh
build=$(cd "${1:-build}" && pwd)
export PATH=$build:$PATH LC_ALL=C
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit
ulimit -c 0

# 300 pictures of several sizes, 30 of them broken, in folders.
for i in $(seq -w 300); do
    folder=in/$((10#$i % 7))
    mkdir -p $folder
    n=$((8 + 10#$i % 5))
    { printf 'P5\n%d 9\n255\n' $n && head -c $((9 * n)) <(printf "picture %d of many. " {1..20}"$i"); } >$folder/$i.pgm
    [ $((10#$i % 10)) -ne 3 ] || truncate -s -4 $folder/$i.pgm
done
gpufilter smooth -R in --out-dir want >/dev/null 2>want.log
code=$?

summary() { grep -q "^$1 done, $2 failed, $3 skipped in " "$4"; }
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
same() { diff -r -x '.*' want "$1"; }
for threads in 1 3 16; do
    gpufilter smooth -R in --out-dir threads$threads --threads $threads -q 2>/dev/null
    check "the same with $threads threads" same threads$threads
done

# Killed in the middle of as many pictures as there are threads, by a signal, and run again.
litter() { find "$1" -name '.*.tmp' | wc -l; }
for signal in KILL TERM INT HUP; do
    for threads in 1 4; do
        rm -rf some out
        mkdir some
        cp in/1/*[124-9].pgm in/2/*[124-9].pgm some
        files=(some/*)
        half=$((${#files[@]} / 2))
        for ((t = 0; t < threads; t++)); do
            mv "${files[half + t]}" held$t
            mkfifo "${files[half + t]}"
        done
        # A shell's background jobs ignore INT; the program leaves ignored signals ignored.
        env --default-signal gpufilter smooth some/* -O out --threads $threads 2>/dev/null &
        program=$!
        descriptors=()
        for ((t = 0; t < threads; t++)); do
            exec {fd}>"${files[half + t]}"
            head -c 30 held$t >&$fd
            descriptors+=("$fd")
        done
        for _ in $(seq 500); do
            [ "$(under_way $program)" = $threads ] && [ "$(ls out | wc -l)" -ge $half ] && break
            sleep 0.01
        done
        begun=$(under_way $program) named=$(litter out)
        kill -s $signal $program
        wait $program 2>/dev/null
        code=$?
        for fd in "${descriptors[@]}"; do exec {fd}>&-; done
        left=$(litter out) made=$(ls out | wc -l)
        for ((t = 0; t < threads; t++)); do mv -f held$t "${files[half + t]}"; done
        ls -i out >before
        gpufilter smooth some/* -O out --resume 2>sum
        resumed=$?
        ls -i out >after
        gpufilter smooth some/* -O whole$signal$threads -q
        killed() { [ "$begun" -eq $threads ] && [ $code -eq $((128 + $(kill -l $signal))) ] && [ "$made" -eq $half ]; }
        # Only temporary names outlive the process.
        clean() { [ "$left" -eq 0 ] || { [ $signal = KILL ] && [ "$left" -eq "$named" ]; }; }
        rest() { [ $resumed -eq 0 ] && summary $((${#files[@]} - half)) 0 $half sum &&
            [ -z "$(comm -23 <(sort before) <(sort after))" ] && diff -r -x '.*' out whole$signal$threads; }
        check "$signal, $threads threads: exit code and what was there" killed
        check "$signal, $threads threads: no litter" clean
        check "$signal, $threads threads: the rest, and only that, is done" rest
    done
done

# Killed whenever, again and again: what is named is whole, and in the end all is as it should be.
kill_often() {
    rm -rf often
    for i in $(seq 60); do
        timeout -s KILL "0.0$((1 + i % 6))" gpufilter smooth -R in -O often --resume --threads 3 -q 2>/dev/null
        code=$?
        for file in $(find often -name '*.pgm'); do
            cmp "$file" "want/${file#often/}" || return 1
        done
        [ $code -ge 128 ] || break
    done
    gpufilter smooth -R in -O often --resume -q 2>errors
    ! grep -q 'exists already' errors && same often
}
check "killed again and again" kill_often

# Ended by a signal whenever, no thread leaves a file that it was about to make, and none complains.
end_often() {
    for i in $(seq 40); do
        rm -rf ended
        timeout -s TERM --preserve-status "0.0$((1 + i % 9))" gpufilter smooth in/[0-4]/*[124-9].pgm -O ended --threads 8 \
            -q 2>errors
        [ "$(litter ended 2>/dev/null)" = 0 ] && [ ! -s errors ] || { cat errors; ls -A ended; return 1; }
    done
}
check "ended again and again" end_often

# Nor if more signals come while the first is being dealt with, some a few microseconds after it: the process ends by
# one of them, when all is removed. A single thread is the one that is hit.
end_by_many() {
    local ended=0
    for i in $(seq 80); do
        rm -rf ended
        env --default-signal gpufilter smooth in/[0-4]/*[124-9].pgm -O ended --threads $((i % 4 ? 1 : 8)) -q 2>errors &
        program=$!
        # Sooner, it might be the shell that is hit, on its way to the program.
        until [ -e ended/.gpufilter-done ] || ! kill -0 $program 2>/dev/null; do :; done
        for signal in {TERM,INT,TERM,HUP}-{1..9}; do
            kill -s ${signal%-*} $program $program
        done 2>/dev/null
        wait $program 2>/dev/null
        code=$?
        case $code in 129 | 130 | 143) ended=$((ended + 1)) ;; esac
        [ $code -ne 1 ] && [ "$(litter ended)" = 0 ] && [ ! -s errors ] || {
            echo "try $i: exit $code"
            cat errors
            ls -A ended
            return 1
        }
    done
    [ $ended -ge 40 ]
}
check "ended by many signals" end_by_many

# A line that is torn, as by a disk that was full, and one that was never written: these outputs are nobody's, and
# stay until they are gone or --force is given.
unknown() { # once without its line
    gpufilter smooth -R in -O torn --resume 2>sum
    summary 0 31 269 sum && [ "$(grep -c 'pgm: exists already, and is not as a run' sum)" -eq 1 ] && same torn || return 1
    gpufilter smooth -R in -O torn --resume --force 2>sum
    summary 1 30 269 sum && same torn || return 1
    gpufilter smooth -R in -O torn --resume 2>sum
    summary 0 30 270 sum
}
torn() {
    rm -rf torn && cp -a threads1 torn && truncate -s -5 torn/.gpufilter-done
    unknown
}
unwritten() {
    rm -rf torn && cp -a threads1 torn
    grep -v ' 0/007.pgm$' threads1/.gpufilter-done >torn/.gpufilter-done
    unknown
}
check "a torn line" torn
check "a line never written" unwritten

# What a power failure may leave: less of an output, or one with gaps, of the time that was noted. It is ours, and made
# again; what somebody cut later is not ours.
cut_off() {
    rm -rf torn && gpufilter smooth in/1/001.pgm in/1/008.pgm -O torn -q && cp -p torn/008.pgm kept && truncate -s 50 torn/008.pgm
    gpufilter smooth in/1/001.pgm in/1/008.pgm -O torn --resume 2>sum
    summary 0 1 1 sum && touch -r kept torn/008.pgm || return 1
    gpufilter smooth in/1/001.pgm in/1/008.pgm -O torn --resume 2>sum
    summary 1 0 1 sum && cmp torn/008.pgm kept
}
with_gaps() {
    rm -rf torn && gpufilter smooth large.pgm -O torn -q && gpufilter smooth large.pgm -O torn --resume 2>sum && summary 0 0 1 sum &&
        cp -p torn/large.pgm kept && fallocate -p -o 65536 -l 65536 torn/large.pgm && touch -r kept torn/large.pgm &&
        ! cmp -s torn/large.pgm kept && gpufilter smooth large.pgm -O torn --resume 2>sum && summary 1 0 0 sum &&
        cmp torn/large.pgm kept
}
check "cut off by a power failure" cut_off
{ printf 'P5\n500 500\n255\n' && head -c 250000 /dev/urandom; } >large.pgm
if cp large.pgm gaps && fallocate -p -o 65536 -l 65536 gaps 2>/dev/null; then
    check "gaps left by a power failure" with_gaps
else
    skip 1 "gaps left by a power failure: the file system makes none"
fi

# What somebody put under the name of an output that was never begun is kept.
never_begun() {
    gpufilter smooth in/3/003.pgm in/1/001.pgm in/1/008.pgm -O never --fail-fast --threads 1 -q 2>/dev/null
    [ -z "$(ls never)" ] && echo mine >never/008.pgm
    gpufilter smooth in/3/003.pgm in/1/001.pgm in/1/008.pgm -O never --resume 2>sum
    [ $? -eq 1 ] && summary 1 2 0 sum && [ "$(cat never/008.pgm)" = mine ]
}
check "not begun, and made by somebody else" never_begun

# What replaces itself: an input that was never begun, and changed since, is not taken for its output.
itself() {
    mkdir itself && cp in/3/003.pgm in/1/001.pgm itself
    gpufilter smooth itself/003.pgm itself/001.pgm -O itself --force --fail-fast --threads 1 -q 2>/dev/null
    cmp itself/001.pgm in/1/001.pgm && cp in/1/008.pgm itself/001.pgm
    gpufilter smooth itself/*.pgm -O itself --resume --force 2>sum
    summary 1 1 0 sum && cmp itself/001.pgm want/1/008.pgm || return 1
    gpufilter smooth itself/*.pgm -O itself --resume --force 2>sum
    summary 0 1 1 sum && cmp itself/001.pgm want/1/008.pgm
}
check "changed in place, and never begun" itself

# Killed between the line of an output and its new name: there is what was there, and it is still known.
between() {
    gpufilter smooth in/1/001.pgm -O between -q
    cp -a between later
    gpufilter smooth in/1/001.pgm -O later --resume --radius 3 -q
    tail -n 1 later/.gpufilter-done >>between/.gpufilter-done
    gpufilter smooth in/1/001.pgm -O between --resume 2>sum && summary 0 0 1 sum && cmp between/001.pgm want/1/001.pgm &&
        gpufilter smooth in/1/001.pgm -O between --resume --radius 3 2>sum && summary 1 0 0 sum &&
        cmp between/001.pgm later/001.pgm && ! cmp -s later/001.pgm want/1/001.pgm
}
check "killed between a line and its name" between

# What happens while a run is under way: it waits for its first input, a pipe.
meanwhile() { # WHAT OPTIONS...
    local happens=$1 program fd
    shift
    rm -f pipe.pgm && mkfifo pipe.pgm
    gpufilter smooth pipe.pgm again.pgm -O late --threads 1 "$@" 2>sum &
    program=$!
    exec {fd}>pipe.pgm # now it has looked at what is there
    $happens
    cat in/1/008.pgm >&$fd
    exec {fd}>&-
    wait $program
}
another() { gpufilter smooth again.pgm -O late --resume -q; }
somebody() { echo mine >late/again.pgm; }
outrun() {
    cp in/1/001.pgm again.pgm && mkdir late
    meanwhile another
    [ $? -eq 1 ] && summary 1 1 0 sum && grep -q 'late/again.pgm: exists already' sum || return 1
    gpufilter smooth again.pgm -O late --resume 2>sum && summary 0 0 1 sum
}
outrun_resumed() {
    rm -rf late && meanwhile another --resume && summary 1 0 1 sum && cmp late/again.pgm want/1/001.pgm || return 1
    touch again.pgm && rm late/pipe.pgm
    meanwhile another --resume && summary 1 0 1 sum || return 1
    rm -rf late && mkdir late && ! meanwhile somebody --resume && summary 1 1 0 sum && [ "$(cat late/again.pgm)" = mine ]
}
appeared() {
    rm -rf late && ! meanwhile somebody --force && summary 1 1 0 sum && [ "$(cat late/again.pgm)" = mine ]
}
changed() {
    rm -rf late && another && touch again.pgm && ! meanwhile somebody --resume && summary 1 1 0 sum &&
        grep -q 'late/again.pgm: was changed while' sum && [ "$(cat late/again.pgm)" = mine ] || return 1
    rm late/pipe.pgm && meanwhile somebody --resume --force && summary 2 0 0 sum && cmp late/again.pgm want/1/001.pgm
}
check "another run is first" outrun
check "another run is first, with --resume" outrun_resumed
check "a file appears under --force" appeared
check "a file is changed while it is made again" changed

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
        [ $? -eq 1 ] && summary 0 2 0 sum && [ "$(grep -c 'cannot create a file in its folder' sum)" -eq 2 ] &&
            [ -z "$(ls -A closed)" ]; }
    below() { other gpufilter smooth in/1/001.pgm -O closed/new 2>sum
        [ $? -eq 1 ] && grep -q '^gpufilter: closed/new: cannot create the folder: Permission denied$' sum; }
    secret() { other gpufilter smooth -R part -O open 2>sum
        [ $? -eq 1 ] && grep -q '^gpufilter: part/secret: cannot read the folder: ' sum && summary 1 1 0 sum; }
    partly() { other gpufilter smooth -R part in/1/001.pgm -O half 2>sum
        [ $? -eq 1 ] && summary 1 2 0 sum; }
    no_record() { mkdir -m 777 unrecorded && : >unrecorded/.gpufilter-done && chmod 444 unrecorded/.gpufilter-done
        other gpufilter smooth in/1/001.pgm in/1/008.pgm -O unrecorded 2>sum
        [ $? -eq 0 ] && summary 2 0 0 sum && [ "$(grep -c 'gpufilter-done: cannot write: .* need --force' sum)" -eq 1 ]
        other gpufilter smooth in/1/001.pgm in/1/008.pgm -O unrecorded --resume 2>sum
        [ $? -eq 1 ] && summary 0 2 0 sum && other gpufilter smooth in/1/00[18].pgm -O unrecorded --resume --force 2>sum &&
            summary 2 0 0 sum; }
    unsearched() { mkdir -p blind/d/sub && cp in/1/001.pgm blind/d/sub && cp in/1/008.pgm blind && chmod 644 blind/d
        mkdir -m 777 seen && other gpufilter smooth -R blind -O seen 2>sum
        [ $? -eq 1 ] && grep -q '^gpufilter: blind/d/sub: cannot look at it: Permission denied$' sum && summary 1 1 0 sum; }
    check "a folder that may not be written" closed
    check "a folder in it" below
    check "a folder that may not be read" secret
    check "a folder below that may not be written" partly
    check "a record that may not be written" no_record
    check "a folder that may be read, but not searched" unsearched
    chmod 755 part/secret blind/d
else
    skip 1 "folders without permission: there is no other user to be"
fi

# On a terminal there is a bar, and nowhere else.
if python3 -c 'import pty; pty.openpty()' >/dev/null 2>&1; then
    cp in/1/001.pgm in/1/008.pgm .
    cat >terminal.py <<'P'
import fcntl, os, pty, re, struct, sys, termios, threading, time

def run(arguments, columns=80, term='xterm', kill=None):
    """What comes out of a run on a terminal, whose third input takes half a second, and its exit code."""
    for path in ('slow.pgm', 'out'):
        os.system('rm -rf ' + path)
    os.mkfifo('slow.pgm')
    pid, terminal = pty.fork()
    if pid == 0:
        time.sleep(0.1)
        if term is None:
            os.environ.pop('TERM', None)
        else:
            os.environ['TERM'] = term
        os.environ['NO_COLOR'] = '1'
        os.execvp('gpufilter', ['gpufilter', 'smooth', '001.pgm', 'bad.pgm', 'slow.pgm', '008.pgm', '-O', 'out',
                                '--threads', '1'] + arguments)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    def feed():
        with open('slow.pgm', 'wb') as pipe:
            time.sleep(0.5)
            if kill:
                os.kill(pid, kill)
            else:
                pipe.write(open('001.pgm', 'rb').read())
    feeder = threading.Thread(target=feed)
    feeder.start()
    out = b''
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        out += data
    feeder.join()
    return out.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

open('bad.pgm', 'w').write('text')
ERASE = '\r\x1b[K'
BAR = re.compile(r'\r\x1b\[K(\[#+-*\] )?( *\d+/4  [0-9.]+ MP/s  (-:--|\d+:\d\d) left  1 failed)')
what = sys.argv[1]
if what == 'bar':
    for columns in (80, 200, 45, 44, 30):
        out, code = run([], columns)
        assert code == 1, (columns, out)
        bars = BAR.findall(out)
        assert bars or columns == 30 and '0:01 left  1 f' + ERASE in out, (columns, out)
        assert all(bool(bar) == (columns > 43) for bar, _, _ in bars), (columns, out)
        assert all(len(part.split('\r')[0]) < columns for part in out.split(ERASE) if 'left' in part), (columns, out)
        # What is left on the screen: the error and the sum.
        screen = ''
        for line in out.split('\r\n'):
            screen += line.split(ERASE)[-1] + '\n'
        assert re.fullmatch(r'gpufilter: bad.pgm: .*\n3 done, 1 failed, 0 skipped in [0-9.]+ s.*, [0-9.]+ MP/s, .* in, .* out\n\n', screen), screen
elif what == 'none':
    for arguments, term in (([], 'dumb'), ([], ''), ([], None), (['--no-progress'], 'xterm'), (['--quiet'], 'xterm')):
        out, code = run(arguments, 80, term)
        assert code == 1 and '\x1b' not in out and 'left' not in out, (arguments, term, out)
elif what == 'often':
    out, code = run([])
    assert out.count(ERASE) <= 12, out
P
    check "a bar that fits" python3 terminal.py bar
    check "no bar where it is not wanted" python3 terminal.py none
    check "a bar not drawn too often" python3 terminal.py often
    pipe() { rm -rf out; TERM=xterm gpufilter smooth 001.pgm 008.pgm -O out 2>&1 | grep -q '^2 done' && rm -rf out &&
        [ "$(TERM=xterm gpufilter smooth 001.pgm 008.pgm -O out 2>&1 | tr -d '[:print:]\n' | wc -c)" -eq 0 ]; }
    check "no bar in a pipe" pipe
else
    skip 4 "the bar: there is no python3, or no pseudo-terminal"
fi

check_sum
