"""A terminal without a window, and a shell in it, for docs/make-tour.py."""
import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

COLUMNS, ROWS = 80, 24
WAIT = 300 # seconds for a prompt, or for what is to be seen


class Terminal:
    """What a screen shows when bytes are sent to it, as far as programs of a tour go; another sequence is an error."""

    def __init__(self):
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.rest = ""       # of a sequence whose end has not come yet
        self.marks = []      # what was sent as an operating system command, which shows nothing
        self.clear()

    def clear(self):
        self.above = []      # lines that have scrolled off
        self.lines = [[" "] * COLUMNS for _ in range(ROWS)]
        self.x = self.y = 0
        self.full = False    # the last column was written: what comes next goes to the next line
        self.wrapped = []    # lines that did not fit

    def text(self):
        """All lines, those that have scrolled off, too, to the last that holds something."""
        lines = ["".join(line).rstrip() for line in self.above + self.lines]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def line(self):
        """The line of the cursor, up to it at least."""
        return "".join(self.lines[self.y]).rstrip().ljust(self.x)

    def feed(self, data):
        text = self.rest + self.decoder.decode(data)
        self.rest = ""
        while text:
            if text[0] == "\x1b":
                found = re.match(r"\x1b(?:\[([?>]?)([\d;]*)([@-~])|\]([^\x07\x1b]*)(?:\x07|\x1b\\)|([=>78M])|([()].))", text)
                if not found:
                    if len(text) > 200:
                        raise ValueError(f"an unknown sequence: {text[:20]!r}")
                    self.rest = text
                    return
                self.sequence(found)
                text = text[found.end():]
            else:
                self.put(text[0])
                text = text[1:]

    def sequence(self, found):
        private, numbers, final, mark = found.group(1, 2, 3, 4)
        if mark is not None:
            self.marks.append(mark)
            return
        if final is None or private or final in "mlh": # colours, modes of the keyboard
            return
        n = int(numbers or 0) if ";" not in numbers else 0
        self.full = False
        if final == "K":
            start, end = ((self.x, COLUMNS), (0, self.x + 1), (0, COLUMNS))[n]
            self.lines[self.y][start:end] = [" "] * (end - start)
        elif final == "J" and n in (0, 2):
            if n == 0:
                self.lines[self.y][self.x:] = [" "] * (COLUMNS - self.x)
            for y in range(self.y + 1 if n == 0 else 0, ROWS):
                self.lines[y] = [" "] * COLUMNS
        elif final in "ABCD":
            step = max(n, 1)
            self.y = min(max(self.y + {"A": -step, "B": step}.get(final, 0), 0), ROWS - 1)
            self.x = min(max(self.x + {"D": -step, "C": step}.get(final, 0), 0), COLUMNS - 1)
        elif final == "G":
            self.x = min(max(n, 1), COLUMNS) - 1
        elif final == "P":
            line = self.lines[self.y]
            self.lines[self.y] = line[:self.x] + line[self.x + max(n, 1):] + [" "] * min(max(n, 1), COLUMNS - self.x)
        elif final == "@":
            line = self.lines[self.y]
            self.lines[self.y] = (line[:self.x] + [" "] * max(n, 1) + line[self.x:])[:COLUMNS]
        elif final == "H" and not numbers:
            self.x = self.y = 0
        else:
            raise ValueError(f"an unknown sequence: {found.group()!r}")

    def put(self, char):
        if char == "\r":
            self.x, self.full = 0, False
        elif char == "\n":
            self.down()
        elif char == "\b":
            self.x, self.full = max(self.x - 1, 0), False
        elif char == "\t":
            self.x = min(self.x // 8 * 8 + 8, COLUMNS - 1)
        elif char >= " ":
            if self.full:
                self.wrapped.append(self.line())
                self.x, self.full = 0, False
                self.down()
            self.lines[self.y][self.x] = char
            self.full = self.x == COLUMNS - 1
            self.x = min(self.x + 1, COLUMNS - 1)
        elif char != "\a":
            raise ValueError(f"an unknown control character: {char!r}")

    def down(self):
        if self.y < ROWS - 1:
            self.y += 1
        else:
            self.above.append(self.lines.pop(0))
            self.lines.append([" "] * COLUMNS)


class Session:
    """bash, as somebody has it at a terminal. Its prompt sends the exit code along, unseen."""

    def __init__(self, folder, environment, begin):
        """begin is what bash reads first."""
        self.terminal = Terminal()
        place = os.path.dirname(folder)
        inputrc, bashrc = os.path.join(place, "inputrc"), os.path.join(place, "bashrc")
        for path, text in ((inputrc, "set enable-bracketed-paste off\nset bell-style none\n"),
                           (bashrc, begin + "\nPS1='$ ' PROMPT_COMMAND='printf \"\\e]7;%s\\a\" $?'\n")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        environment = {**environment, "TERM": "xterm", "INPUTRC": inputrc, "HISTFILE": "/dev/null"}
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--noprofile", "--rcfile", bashrc, "-i"], environment)
        self.prompt()

    def read(self, until, look=None):
        """Shows what comes until until() is true; look() is called at each state of a line that there was."""
        end = time.monotonic() + WAIT
        while not until():
            if not select.select([self.file], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("this did not come in time; the screen is\n" + "\n".join(self.terminal.text()))
            for piece in re.split(rb"(?=[\r\n])", os.read(self.file, 65536)):
                self.terminal.feed(piece)
                if look:
                    look()

    def prompt(self, look=None):
        """Waits for the prompt, and gives the exit code of what ran before it."""
        terminal = self.terminal
        self.read(lambda: any(mark.startswith("7;") for mark in terminal.marks) and terminal.line().startswith("$ "), look)
        code = int(terminal.marks[-1].partition(";")[2])
        terminal.marks.clear()
        return code

    def send(self, keys):
        os.write(self.file, keys.encode())

    def run(self, command, look=None):
        """The exit code of a command, and the lines that it has printed, its own left out."""
        self.terminal.clear()
        self.terminal.feed(b"$ ")
        self.send(command + "\r")
        code = self.prompt(look)
        return code, self.terminal.text()[1:-1]

    def keys(self, keys, until):
        """Types without a return, and waits until the screen ends with that; gives its lines."""
        self.send(keys)
        self.read(lambda: re.search(rf"(?:{until})\Z", "\n".join(self.terminal.text())))
        return self.terminal.text()

    def end(self):
        os.close(self.file) # which hangs up: what runs in it ends
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
