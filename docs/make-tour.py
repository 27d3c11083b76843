#!/usr/bin/env python3
"""Writes docs/tour.md: a session of a new user, in a terminal of 80x24, as it went when this program had it.

    docs/make-tour.py BUILD             write it anew (make tour)
    docs/make-tour.py BUILD --check     have the session again, and compare: times, rates and names of machines may differ

The session stands in docs/tour.txt, between lines of text that go into docs/tour.md as they are:

    $ COMMAND          is typed. Its exit code must be 0, no line may be longer than the screen is wide, and all lines
                       together no more than it is high
    @ exit N           ... but of the next command it is N,
    @ wide             ... but lines of the next one may be longer,
    @ long             ... but the next one prints more; what is still on the screen is shown
    @ when REGEX       the next one is shown as it is when a line says REGEX, and then again as it is in the end,
    @ then TEXT        ... with this text in between
    @ keys KEYS        is typed without a return (<Tab>, <C-u>: those keys),
    @ until REGEX      ... and then the screen must end with that
    @ before COMMAND   is run before the session begins, with the programs of the build at hand
    @ if FILE...       to "@ end": only where these files are; build/ is the build
    @ # TEXT           a remark
"""
import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile

import terminal

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCRIPT, TOUR = os.path.join(ROOT, "docs/tour.txt"), os.path.join(ROOT, "docs/tour.md")
KEYS = {"<Tab>": "\t", "<C-u>": "\x15"}
COMPLETION = "/usr/share/bash-completion/bash_completion"
# As Debian's bash begins, where the package bash-completion is.
BEGIN = f"if [ -r {COMPLETION} ]; then . {COMPLETION}; else . build/completions/gpufilter.bash 2>/dev/null; fi"

# What is not the same on another machine, or at another time.
VARIES = [
    (r"(?m)^(no CUDA|CUDA for sm [^,]+), (no )?cairo, no MPI; SIMD here: \w+$", "what is built in"),
    (r"\[[#-]{40}\] +\d+/(\d+)  [\d.]+ [MG]P/s  [\d:-]+ left", r"[...] N/\1  N MP/s  T left"),
    (r"\b\d+ threads?, \w+", "N threads, ISA"),
    (r"\b\d+ bands of \d+ rows", "N bands of N rows"),
    # These may go on at the beginning of the next line; the first is there with CUDA alone.
    (r"(?m)^  auto: .*(\n(?!```|\$|  ).+)?\n", ""),
    (r"(?m)^  busy: .*(\n(?!```|\$|  ).+)?", "  busy: ..."),
    (r"\b[\d.]+ (ms|s|[kMG]P/s|[kMG]B/s)(?!\w)", r"N \1"),
    (r" +", " "),
]


class Failed(Exception):
    pass


class Tour:
    def __init__(self, build, session):
        self.build, self.session, self.out = build, session, []
        self.options = {}
        self.typed = ""           # what stands on the line that keys are typed into
        self.number = 0

    def fail(self, what):
        raise Failed(f"docs/tour.txt:{self.number}: {what}")

    # ---- the text --------------------------------------------------------------------------------------

    def show(self, lines):
        """Lines of a terminal; they continue those right above."""
        if self.out[-1:] == ["```"]:
            self.out.pop()
        else:
            self.out.append("```console" if lines[0].startswith("$ ") else "```text")
        self.out += lines + ["```"]

    def write(self, text):
        if text or self.out[-1:] != [""]:
            self.out.append(text)

    # ---- the session -----------------------------------------------------------------------------------

    def command(self, command):
        options, self.options, screen = self.options, {}, self.session.terminal
        if len(command) + 2 > terminal.COLUMNS:
            self.fail("the command does not fit on a line")
        seen = []

        def look():
            lines = screen.text()
            if not seen and lines and re.search(options["when"], lines[-1]):
                seen.extend(lines[1:])

        code, lines = self.session.run(command, look if "when" in options else None)
        said = "\n".join(lines)
        if code != int(options.get("exit", 0)):
            self.fail(f"exit code {code}:\n{said}")
        if screen.wrapped and "wide" not in options:
            self.fail(f"a line is longer than {terminal.COLUMNS} columns:\n{screen.wrapped[0]}...")
        many = len(lines) + 2 # and the command, and the prompt
        if "long" in options:
            if many <= terminal.ROWS:
                self.fail("that fits on the screen: it is not long")
            self.show(["$ " + command, "..."] + lines[1 - terminal.ROWS:])
            return
        if many > terminal.ROWS:
            self.fail(f"{len(lines)} lines do not fit on a screen of {terminal.ROWS} with the command and the next prompt")
        if "when" in options:
            if not seen:
                self.fail("that was never to be seen")
            self.show(["$ " + command] + seen)
            self.out += ["", options["then"], ""]
            self.show(lines)
        else:
            self.show(["$ " + command] + lines)

    def keys(self, keys):
        screen, until = self.session.terminal, self.options.pop("until", None)
        if not until:
            self.fail("no @ until before it")
        if not self.typed:
            screen.clear()
            screen.feed(b"$ ")
        elif self.out[-2:] == [self.typed, "```"]: # the line as it is shown already
            self.out[-2:] = ["```"]
        typed, above = screen.line() + keys, len(screen.text()) - 1
        for name, key in KEYS.items():
            keys = keys.replace(name, key)
        lines = self.session.keys(keys, until)
        self.typed = lines[-1]
        if "\x15" in keys: # the line is empty again
            self.typed = ""
        else:
            self.show([typed] + lines[above + ("\t\t" in keys):])

    def directive(self, text):
        word, _, rest = text.partition(" ")
        if word in ("exit", "when", "then", "until"):
            self.options[word] = rest
        elif word in ("wide", "long"):
            self.options[word] = True
        elif word == "keys":
            self.keys(rest)
        elif word not in ("#", "before"):
            self.fail(f"@ {word} means nothing")

    def line(self, number, line):
        self.number = number
        try:
            if line.startswith("$ "):
                self.command(line[2:])
            elif line.startswith("@ "):
                self.directive(line[2:])
            else:
                self.write(line)
        except (TimeoutError, ValueError, OSError) as error:
            self.fail(error)


def read_script():
    with open(SCRIPT, encoding="utf-8") as file:
        return list(enumerate(file.read().rstrip("\n").split("\n"), 1))


def missing(build, condition):
    """The first file of a condition that is not here."""
    paths = ((path, os.path.join(build, path[6:]) if path.startswith("build/") else path) for path in condition.split())
    return next((path for path, place in paths if not os.path.exists(place)), None)


def have(build):
    """The session: the document as it is now, and the parts that cannot be had here."""
    script, left_out = read_script(), []
    place = tempfile.mkdtemp(prefix="gpufilter-tour-")
    folder, home = os.path.join(place, "gpufilter"), os.path.join(place, "home")
    os.mkdir(home)
    os.mkdir(folder)
    for name in os.listdir(ROOT):
        if not name.startswith(".git") and name not in ("build", "gpufilter"):
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    os.symlink(build, os.path.join(folder, "build"))
    kept = {name: value for name, value in os.environ.items() if name.startswith(("ASAN_", "TSAN_", "UBSAN_", "GCOV_"))}
    path = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    environment = {**kept, **how_built(build), "HOME": home, "LANG": "C.UTF-8", "PATH": f"{home}/.local/bin:{path}"}
    session = None
    try:
        for _, line in script:
            if line.startswith("@ before "):
                subprocess.run(["bash", "-euc", line[9:]], cwd=folder, check=True,
                               env={**environment, "PATH": f"{build}:{path}"})
        session = terminal.Session(folder, environment, BEGIN)
        tour, skipping = Tour(build, session), False
        for number, line in script:
            if line.startswith("@ if "):
                without = missing(build, line[5:])
                if without:
                    skipping = True
                    left_out.append((line[5:], without))
                else:
                    tour.write(f"<!-- if {line[5:]} -->")
            elif line == "@ end":
                if not skipping:
                    tour.write("<!-- end -->")
                skipping = False
            elif not skipping:
                tour.line(number, line)
        return "\n".join(tour.out).strip("\n") + "\n", left_out
    finally:
        if session:
            session.end()
        shutil.rmtree(place, ignore_errors=True)


def how_built(build):
    """What make must be told so that it takes what was built for what it would build."""
    with open(os.path.join(build, "config"), encoding="utf-8") as file:
        config = file.read()
    sanitized = re.search(r"-fsanitize=([a-z,]+)", config)
    return {"CUDA": "1" if "-DGF_WITH_CUDA" in config else "0", "SAN": sanitized[1] if sanitized else "", "BUILD": "build"}


def even(text, without):
    """The text without what varies, and without the parts that cannot be had here."""
    for condition, _ in without:
        text = re.sub(rf"(?s)\n*<!-- if {re.escape(condition)} -->\n.*?<!-- end -->", "", text)
    for pattern, name in VARIES:
        text = re.sub(pattern, name, text)
    # Where the sum of a batch goes on in the next line depends on how long its times and rates are.
    text = re.sub(r"\d+ done, [^`]*?(?=\n```)", lambda found: re.sub(r"\s+", "", found[0]), text)
    return re.sub(r"\n{2,}", "\n\n", text).split("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    try:
        text, left_out = have(os.path.abspath(arguments.build))
    except Failed as failed:
        sys.exit(str(failed))
    if not arguments.check:
        for condition, without in left_out:
            print(f"make-tour: left out is what needs {without}", file=sys.stderr)
        with open(TOUR, "w", encoding="utf-8") as file:
            file.write(text)
        return
    for condition, without in left_out:
        print(f"LEFT OUT a part of the tour: there is no {without}")
    with open(TOUR, encoding="utf-8") as file:
        was, now = even(file.read(), left_out), even(text, left_out)
    if was != now:
        sys.stdout.writelines(line + "\n" for line in difflib.unified_diff(was, now, "docs/tour.md", "as it is now",
                                                                           lineterm=""))
        sys.exit("docs/tour.md is not what the program does now: make tour")


main()
