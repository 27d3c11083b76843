"""A program on a terminal of its own, for tests of what it shows there: run() gives all that it sent, and its exit code."""
import fcntl
import os
import pty
import struct
import termios
import threading
import time

ERASE = "\r\x1b[K"


def run(command, columns=80, environment=None, meanwhile=None):
    """The text that command (a list) sends to a terminal of so many columns, and its exit code.

    environment: changes to it; None takes a variable away. TERM is xterm if it does not say otherwise. meanwhile(pid)
    runs in a thread beside the program: what feeds its pipes, or kills it.
    """
    child, terminal = pty.fork()
    if child == 0:
        for name, value in {"TERM": "xterm", **(environment or {})}.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        time.sleep(0.1)  # till the terminal has its size
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    beside = threading.Thread(target=meanwhile or (lambda pid: None), args=[child])
    beside.start()
    out = b""
    try:
        while got := os.read(terminal, 65536):
            out += got
    except OSError:  # the program has ended
        pass
    beside.join()
    os.close(terminal)
    return out.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def screen(out):
    """What stays there: of each line what was written after the last time it was erased."""
    return "".join(line.split(ERASE)[-1] + "\n" for line in out.split("\r\n"))


def widest(out, word):
    """How many columns the longest of the lines with that word took, those that were erased, too."""
    return max((len(part.split("\r")[0]) for part in out.split(ERASE) if word in part), default=0)
