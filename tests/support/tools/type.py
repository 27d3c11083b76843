#!/usr/bin/env python3
"""Types into a program that runs on its own terminal: type.py COMMAND... <KEYS >SCREEN

The prompt of the program must be READY, a number that increases with each command, and ">". At each new prompt, one
line of standard input is sent with its carriage return. The terminal is so large that lines do not wrap and lists are
shown without a question.
"""
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time


def main():
    lines = [line for line in re.split(rb"(?<=\r)", sys.stdin.buffer.read()) if line]
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.execvp(sys.argv[1], sys.argv[1:])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 600, 500, 0, 0))
    shown, keys, last, late = b"", b"", -1, time.monotonic() + 100
    while time.monotonic() < late:
        can_read, can_write, _ = select.select([terminal], [terminal] if keys else [], [], 1)
        if can_write:
            keys = keys[os.write(terminal, keys[:200]):]
        if not can_read:
            continue
        try:
            got = os.read(terminal, 65536)
        except OSError:  # the program has ended
            break
        if not got:
            break
        shown += got
        number = max(map(int, re.findall(rb"READY(\d+)>", shown[-65536:])), default=-1)
        if lines and number > last:
            keys, last = keys + lines.pop(0), number
    else:
        print("type.py: the program did not end in time", file=sys.stderr)
        os.kill(child, 9)
    sys.stdout.buffer.write(shown)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
