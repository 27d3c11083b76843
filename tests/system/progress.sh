#!/usr/bin/env bash
# Progress output and colours, for terminals and programs: tests/system/progress.sh BUILD.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
. tests/support/check.sh
build=$(cd "${1:-build}" && pwd)
root=$PWD
export PATH=$build:$PATH LC_ALL=C
unset NO_COLOR
cd "$work" || exit
gpufilter smooth "$root/samples/page.png" in.pgm -q
gpufilter smooth "$root/samples/scene.png" scene.ppm -q

# ---- events -----------------------------------------------------------------------------------

slowly() { # SECONDS: print in.pgm, with a pause after the first half
    head -c 400000 in.pgm
    sleep "$1"
    tail -c +400001 in.pgm
}

if command -v python3 >/dev/null 2>&1; then
    cat >events.py <<'P'
import json, sys
want = sys.argv[1:]
events = []
for line in sys.stdin:
    if line.startswith('{'):
        event = json.loads(line)
        assert event['schema'] == 'gpufilter-event' and event['schema_version'] == 2, event
        events.append(event)
assert [event['event'] for event in events if event['event'] != 'progress'] == want, events
assert all(a['seconds'] <= b['seconds'] for a, b in zip(events, events[1:])), events
part = 0
for event in events:
    if event['event'] == 'progress':
        assert part <= event['fraction'] <= 1 and event['megapixels_per_second'] > 0, event
        part = event['fraction']
        assert event['seconds_left'] is None or event['seconds_left'] >= 0, event
end = events[-1]
files = events[0]['files']
assert end['done'] + end['failed'] + end['skipped'] == files, events
assert end['failed'] == want.count('failed'), events
if 'SLOW' in __import__('os').environ:
    assert 0 < part < 1, events
P
    one() {
        gpufilter smooth in.pgm a.pgm --progress json --force 2>&1 >/dev/null | python3 events.py begin end &&
            slowly 1.2 | gpufilter smooth --progress json --quiet - b.pgm --rows-per-strip 8 2>&1 | SLOW=1 python3 events.py begin end &&
            cmp a.pgm b.pgm
    }
    check "events of one image" one
    pages() {
        cat in.pgm in.pgm in.pgm >pages.pgm
        gpufilter hist --page all --rows-per-strip 8 --progress json pages.pgm 2>&1 >/dev/null | python3 events.py begin end
    }
    check "all pages of a file are one file" pages
    broken() {
        head -c 1000 in.pgm >short.pgm
        gpufilter hist short.pgm --progress json 2>broken >&2
        [ $? -eq 1 ] && python3 events.py begin failed end <broken && [ "$(grep -c '^gpufilter: ' broken)" = 1 ]
    }
    check "events of an image that fails" broken
    many() {
        rm -rf out slow.pgm && mkfifo slow.pgm && { slowly 1.5 >slow.pgm & } &&
            gpufilter smooth in.pgm short.pgm slow.pgm scene.ppm -O out --threads 1 --progress json --rows-per-strip 8 2>many
        [ $? -eq 1 ] && grep -v '^{' many | grep -E '^3 done, 1 failed, 0 skipped in [0-9.]+ s, .* MP/s, each by cpu \(1 thread, .*\), .* in, .* out$' >/dev/null &&
            python3 events.py begin failed end <many && grep -q '"files": 4, "finished": 2, "failed": 1' many
    }
    check "events of a batch" many
    untouched() { # --json prints the same lines on standard output with and without events
        diff <(gpufilter axis-sum in.pgm scene.ppm --json | sed 's/"seconds".*"parameters"//') \
            <(gpufilter axis-sum in.pgm scene.ppm --json --progress json 2>/dev/null | sed 's/"seconds".*"parameters"//')
    }
    check "events with --json" untouched
else
    skip 4 "events: no python3"
fi

# ---- one image on a terminal ------------------------------------------------------------------

if python3 -c 'import pty; pty.openpty()' >/dev/null 2>&1; then
    export PYTHONPATH=$root/tests/support/tools PYTHONDONTWRITEBYTECODE=1
    cat >terminal.py <<'P'
import os, re, sys, time
from on_terminal import ERASE, run as run_there, screen, widest

DATA = open('in.pgm', 'rb').read()

def run(arguments, pause, columns=80, environment=None):
    """Run on a terminal with an input pipe that pauses. Return the output and the exit code."""
    for path in ('slow.pgm', 'out.pgm'):
        if os.path.lexists(path):
            os.remove(path)
    os.mkfifo('slow.pgm')
    def feed(pid):
        with open('slow.pgm', 'wb') as pipe:
            for at in range(0, len(DATA), 100000):
                pipe.write(DATA[at:at + 100000])
                pipe.flush()
                time.sleep(pause / 10)
    return run_there(['gpufilter'] + arguments, columns, environment, feed)

BAR = re.compile(r'\r\x1b\[K(\[#*-*\] )?(\d+ %), [0-9.]+ MP/s, (-:--|\d+:\d\d) left')
SMOOTH = ['smooth', '-k', 'slow.pgm', 'out.pgm', '--rows-per-strip', '8']
what = sys.argv[1]
if what == 'bar':
    for columns in (80, 30):
        out, code = run(SMOOTH, 2, columns)
        bars = BAR.findall(out)
        assert code == 0 and bars, (columns, out)
        parts = [int(bar[1].split()[0]) for bar in bars]
        assert parts == sorted(parts) and 30 < parts[0] and parts[-1] <= 100, parts
        assert widest(out, 'left') < columns, (columns, out)
        assert re.fullmatch(r'out.pgm: [0-9.]+ s, \d+ MP/s by cpu \(.*\), 935 kB in, 935 kB out\n\n',
                            screen(out)), out
elif what == 'twice':
    out, code = run(['hist', 'slow.pgm', '--bins', '2', '--rows-per-strip', '8'], 2)
    assert code == 0 and BAR.search(out) and 'share' in out.split(ERASE)[-1], out
elif what == 'none':
    for arguments, pause, environment in (([], 0, {}), (['--no-progress'], 1.5, {}), (['--progress', 'none'], 1.5, {}),
                                          (['--quiet'], 1.5, {}), ([], 1.5, {'TERM': 'dumb'})):
        out, code = run(SMOOTH + arguments, pause, 80, environment)
        assert code == 0 and 'left' not in out and '\x1b' not in out, (arguments, environment, out)
elif what == 'colour':
    for arguments, environment, coloured in (
            ([], {}, True), ([], {'NO_COLOR': '1'}, False), ([], {'NO_COLOR': ''}, True), ([], {'TERM': 'dumb'}, False),
            (['--color', 'never'], {}, False), (['--color=always'], {'NO_COLOR': '1'}, True)):
        for command in (['smooth', 'in.pgm', 'out.xyz'], ['hist', 'in.pgm', '--bins', '2'], ['compare', 'in.pgm', 'in.pgm'],
                        ['smooth', '--help']):
            out, _ = run_there(['gpufilter'] + command + arguments, 80, environment)
            assert ('\x1b[' in out) == coloured, (command, arguments, environment, out)
            assert out.count('\x1b[0m') * 2 == out.count('\x1b['), (command, out)
P
    check "a progress bar for one image" python3 terminal.py bar
    check "a bar before a result table" python3 terminal.py twice
    check "no bar with options or terminals that disable it, or for short runs" python3 terminal.py none
    check "colours follow --color, NO_COLOR and TERM" python3 terminal.py colour
else
    skip 4 "progress bar: no python3 or no pseudo-terminal"
fi
plain() { # neither in a pipe nor in a file
    [ "$(gpufilter hist scene.ppm --bins 2 --channel all | grep -c $'\033')" = 0 ] &&
        [ "$(gpufilter hist scene.ppm --bins 2 --channel all --color always | grep -c $'\033')" -gt 5 ] &&
        [ "$({ gpufilter smooth x.pgm y.pgm; slowly 1.2 | gpufilter smooth - - --format pgm; } 2>&1 >/dev/null | grep -c $'\033\|left')" = 0 ]
}
check "colours and a bar only on terminals" plain

check_summary
