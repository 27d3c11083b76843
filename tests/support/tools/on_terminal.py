"""Runs a program on its own terminal: run() returns its output and its exit code."""
import fcntl
import os
import pty
import struct
import termios
import threading
import time

ERASE = "\r\x1b[K"


def run(command, columns=80, environment=None, during=None):
    """Return the text that command (a list) writes to a terminal of this width, and its exit code.

    environment: changes to the environment; None removes a variable. TERM defaults to xterm. during(pid) runs in a
    thread during the program: for example, it feeds a pipe or kills the program.
    """
    child, terminal = pty.fork()
    if child == 0:
        for name, value in {"TERM": "xterm", **(environment or {})}.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        time.sleep(0.1)  # until the terminal has its size
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    thread = threading.Thread(target=during or (lambda pid: None), args=[child])
    thread.start()
    out = b""
    try:
        while got := os.read(terminal, 65536):
            out += got
    except OSError:  # the program has ended
        pass
    thread.join()
    os.close(terminal)
    return out.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def screen(out):
    """Return the final screen: of each line, the text after its last erasure."""
    return "".join(line.split(ERASE)[-1] + "\n" for line in out.split("\r\n"))


def widest(out, word):
    """Return the width of the longest line with this word, erased lines included."""
    return max((len(part.split("\r")[0]) for part in out.split(ERASE) if word in part), default=0)
