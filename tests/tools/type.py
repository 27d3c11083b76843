#!/usr/bin/env python3
"""Types into a program that runs on a terminal of its own: type.py PROMPT COMMAND... <KEYS >SCREEN

Waits until the program has shown the prompt, sends it all of standard input, and tells what it showed until it ended.
The terminal is wide and high, so that nothing is wrapped, and nobody asks whether a list is to be shown.
"""
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time


def main():
    prompt, command = os.fsencode(sys.argv[1]), sys.argv[2:]
    keys = sys.stdin.buffer.read()
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 600, 500, 0, 0))
    shown, late = b"", time.monotonic() + 60
    while time.monotonic() < late:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            got = os.read(terminal, 65536)
        except OSError:  # the program has ended
            break
        if not got:
            break
        shown += got
        if keys and prompt in shown:
            os.write(terminal, keys)
            keys = b""
    else:
        print("type.py: the program did not end in time", file=sys.stderr)
        os.kill(child, 9)
    sys.stdout.buffer.write(shown)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
