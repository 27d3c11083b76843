#!/usr/bin/env bash
# The progress bar of a batch: tests/system/batch_bar.sh BUILD. It fits the terminal and appears only on terminals.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
build=$(cd "${1:-build}" && pwd)
root=$PWD
. tests/support/batch_run.sh

if python3 -c 'import pty; pty.openpty()' >/dev/null 2>&1; then
    cp in/1/001.pgm in/1/008.pgm .
    export PYTHONPATH=$root/tests/support/tools PYTHONDONTWRITEBYTECODE=1
    cat >terminal.py <<'P'
import os, re, sys, time
from on_terminal import ERASE, run as run_there, screen, widest

def run(arguments, columns=80, term='xterm'):
    """Run on a terminal; the third input takes half a second. Return the output and the exit code."""
    for path in ('slow.pgm', 'out'):
        os.system('rm -rf ' + path)
    os.mkfifo('slow.pgm')
    def feed(pid):
        with open('slow.pgm', 'wb') as pipe:
            time.sleep(0.5)
            pipe.write(open('001.pgm', 'rb').read())
    return run_there(['gpufilter', 'smooth', '-k', '001.pgm', 'bad.pgm', 'slow.pgm', '008.pgm', '-O', 'out', '--threads', '1'] + arguments,
                     columns, {'TERM': term, 'NO_COLOR': '1'}, feed)

open('bad.pgm', 'w').write('text')
BAR = re.compile(r'\r\x1b\[K(\[#+-*\] )?(\d+ of 4 files, 1 failed, [0-9.]+ MP/s, (-:--|\d+:\d\d) left)')
what = sys.argv[1]
if what == 'bar':
    for columns in (80, 200, 52, 51, 30):
        out, code = run([], columns)
        assert code == 1, (columns, out)
        bars = BAR.findall(out)
        assert bars or columns == 30 and '1 failed, 0.0 M' + ERASE in out, (columns, out)
        assert all(bool(bar) == (columns > 51) for bar, _, _ in bars), (columns, out)
        assert widest(out, 'left') < columns, (columns, out)
        # The final screen holds the error and the summary.
        assert re.fullmatch(r'gpufilter: bad.pgm: .*\n3 done, 1 failed, 0 skipped in [0-9.]+ s, [0-9.]+ MP/s, each by cpu .*, .* in, .* out\n\n', screen(out)), out
elif what == 'none':
    for arguments, term in (([], 'dumb'), ([], ''), ([], None), (['--no-progress'], 'xterm'), (['--quiet'], 'xterm')):
        out, code = run(arguments, 80, term)
        assert code == 1 and '\x1b' not in out and 'left' not in out, (arguments, term, out)
elif what == 'often':
    out, code = run([])
    assert out.count(ERASE) <= 12, out
P
    check "the bar fits the terminal" python3 terminal.py bar
    check "no bar on dumb terminals, with --no-progress or --quiet" python3 terminal.py none
    check "the bar is drawn at most 12 times" python3 terminal.py often
    pipe() { rm -rf out; TERM=xterm gpufilter smooth 001.pgm 008.pgm -O out 2>&1 | grep '^2 done' >/dev/null && rm -rf out &&
        [ "$(TERM=xterm gpufilter smooth 001.pgm 008.pgm -O out 2>&1 | tr -d '[:print:]\n' | wc -c)" -eq 0 ]; }
    check "no bar in a pipe" pipe
else
    skip 4 "progress bar: no python3 or no pseudo-terminal"
fi

check_summary
