"""Finds the command lines that documents tell a reader to type; tests/doc_commands.py runs them.

In Markdown they stand
  * in code blocks, fenced or indented by four spaces. A fenced block marked sh, bash, shell or console is commands, one
    marked otherwise (c, json, text, ...) is none; one without a mark, and an indented one, is commands if a line of it
    begins with one of PROGRAMS. If lines begin with "$ ", only those are typed, and the others are what was printed;
  * in `code` in running text, if that is a whole command line: one of PROGRAMS and at least one operand or option (of
    gpufilter beside the filter: `gpufilter smooth` only names something). In a column headed "command" of a table
    everything in `code` is one.
In the help of filters and commands they are lines of "Examples"; in manual pages lines that are shown as they stand.
"""
import collections
import glob
import os
import re
import subprocess

# What a command line begins with; so does whatever lies in a folder of PLACES.
PROGRAMS = set("""gpufilter gpufilter-mpi make sudo apt apt-get dpkg dpkg-deb dpkg-buildpackage docker podman lintian
    mpirun mpiexec srun sbatch salloc parallel seq numactl cc gcc clang c++ nvcc pkg-config cmake python3 pip bash
    compute-sanitizer ncu nsys valgrind perf cat echo printf cp ln mkdir cd export find ls git tar curl wget ldd""".split())
PLACES = ("./", "build/", "tests/", "bench/", "samples/", "packaging/", ".ci/")
SHELL = {"sh", "bash", "shell", "console", "shell-session"}

# One logical line, and where it stands; what is run in one folder, by one shell, one after the other.
Command = collections.namedtuple("Command", "path line text")


def program_of(text):
    """The first word that is neither sudo nor NAME=VALUE, and the words behind it; "" if it is no program that we know."""
    words = text.split()
    while words and (words[0] == "sudo" or re.match(r"[A-Za-z_]\w*=", words[0])):
        words = words[1:]
    if words and (words[0] in PROGRAMS or words[0].startswith(PLACES)):
        return words[0].removeprefix("./"), words[1:]
    return "", []


def is_line(span):
    """Is this `code` a whole command line, or the name of something?"""
    program, words = program_of(span)
    least = 1 if program != "gpufilter" or words[:1] and words[0].startswith("-") else 2
    return bool(program) and len(words) >= least


def bare(text):
    """Without its comment, on one line, one space between words."""
    text = re.sub(r"\\\n\s*", " ", text)
    if "\n" not in text:
        text = re.sub(r"(^|\s)# .*$", "", text)
    return " ".join(text.split())


def is_open(text):
    """Does bash want more lines: of a quotation, a loop, a here-document?"""
    if text.endswith("\\"):
        return True
    said = subprocess.run(["bash", "-n"], input=text + "\n", capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C"}).stderr
    return "unexpected end of file" in said or "unexpected EOF" in said or "here-document at line" in said


def dedent(lines):
    least = min((len(text) - len(text.lstrip()) for _, text in lines if text.strip()), default=0)
    return [(number, text[least:]) for number, text in lines]


def commands_in(path, lines, mark):
    """The commands of a code block, of which lines are (number, text); none if it is no block of commands."""
    typed = [(number, text) for number, text in lines if text.startswith("$ ")]
    if mark and mark not in SHELL:
        return []
    if typed:
        known = dict(lines)
        lines = []
        for number, text in typed:
            lines.append((number, text[2:]))
            while text.endswith("\\") and number + 1 in known:
                number += 1
                text = known[number]
                lines.append((number, text.removeprefix("> ")))
    elif not mark and not any(program_of(text)[0] for _, text in lines):
        return []
    found, first, whole = [], 0, ""
    for number, text in lines:
        if not whole:
            first = number
            if not text.strip() or text.lstrip().startswith("#"):
                continue
        whole += "\n" * bool(whole) + text.rstrip()
        if not is_open(whole):
            found.append(Command(path, first, whole))
            whole = ""
    return found + [Command(path, first, whole)] * bool(whole)


class Markdown:
    """Splits a document into code blocks and runs of text."""

    def __init__(self, path, text):
        self.path, self.blocks = path, []
        self.others = []      # code blocks without commands: where they begin
        self.text = []        # lines of the paragraph that is being read
        self.code = []        # lines of the indented block that is being read
        self.depth = 0        # of the list that we are in: how far its text is indented
        self.columns = []     # of the table that we are in
        fence, mark, fenced = None, "", []
        for number, line in enumerate(text.split("\n"), 1):
            opened = re.match(r" *(`{3,}|~{3,}) *([\w-]*)", line)
            if fence:
                if line.strip() == fence:
                    self.add_code(fenced, mark)
                    fence = None
                else:
                    fenced.append((number, line))
            elif opened and not self.code:
                self.end()
                fence, mark, fenced = opened.group(1), opened.group(2), []
            else:
                self.read(number, line)
        self.end()

    def add_code(self, lines, mark):
        commands = commands_in(self.path, dedent(lines), mark)
        if commands:
            self.blocks.append(commands)
        elif lines:
            self.others.append(Command(self.path, *lines[0]))

    def read(self, number, line):
        indent = len(line) - len(line.lstrip())
        item = re.match(r" *(?:[*+-]|\d+[.)]) +", line)
        if not line.strip():
            if self.code:
                self.code.append((number, line))
            else:
                self.end()
                self.columns = []
            return
        if not self.text and indent >= self.depth + 4:
            self.code.append((number, line))
            return
        if self.code:
            self.end()
        if item and indent < self.depth + 4:
            self.end()
            self.depth = len(item.group())
        elif not self.text and indent < self.depth:
            self.depth = 0
        if line.startswith("|") or line.startswith("#"):
            self.end()
            self.text = [(number, line)]
            self.end()
        else:
            self.columns = []
            self.text.append((number, line))

    def end(self):
        """Ends the paragraph or the indented block, and takes what is in it."""
        if self.code:
            self.add_code(self.code, "")
        elif self.text and self.text[0][1].startswith("|"):
            self.row(*self.text[0])
        elif self.text:
            self.spans(self.text[0][0], "\n".join(line for _, line in self.text), is_line)
        self.code, self.text = [], []

    def row(self, number, line):
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:]]
        if not self.columns:
            self.columns = cells
        for column, cell in zip(self.columns, cells):
            self.spans(number, cell, str if column == "command" else is_line)

    def spans(self, number, text, wanted):
        for found in re.finditer(r"(`+)(.+?)\1(?!`)", text, re.S):
            span = " ".join(found.group(2).split())
            if wanted(span):
                self.blocks.append([Command(self.path, number + text.count("\n", 0, found.start()), span)])


def in_markdown(root):
    """Blocks of all documents below a folder; and where code is that has no commands in it."""
    blocks, others = [], []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "build" and not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".md"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    document = Markdown(os.path.relpath(path, root), file.read())
                blocks += document.blocks
                others += document.others
    return blocks, others


def help_of(program, *names):
    return subprocess.run([program, "help", *names], capture_output=True, text=True, check=True).stdout


def in_help(program):
    """Blocks of the help of each filter and command; a page without a command is None."""
    names, section, blocks = [], "", []
    for line in help_of(program).split("\n"):
        section = "" if not line else line.rstrip(":") if line.endswith(":") else section
        if section in ("Filters", "Commands") and line.startswith("  "):
            names.append(line.split()[0])
    for page in [()] + [(name,) for name in names]:
        path = " ".join(("gpufilter help",) + page)
        lines = enumerate(help_of(program, *page).split("\n"), 1)
        found = [Command(path, number, re.sub(r"  .*", "", line.strip())) for number, line in lines
                 if line.startswith("  gpufilter ")]
        blocks.append(found if found or not page else [Command(path, 1, None)])
    return blocks


# What begins and ends text that is shown as it stands, in man(7) and in mdoc(7).
BEGINS, ENDS = {".EX", ".nf", ".Bd"}, {".EE", ".fi", ".Ed"}
ROFF = {"e": "\\", "(rs": "\\", "(aq": "'", "(dq": '"', "(ti": "~", "(ha": "^", "(ga": "`", "-": "-", " ": " "}


def in_manual(build):
    """Blocks of the manual pages, where they have been made."""
    blocks = []
    for path in sorted(glob.glob(os.path.join(build, "man", "**", "*.[1-9]"), recursive=True)):
        with open(path, encoding="utf-8") as file:
            blocks += in_page(os.path.relpath(path, build), file.read())
    return blocks


def in_page(path, text):
    blocks, section, lines = [], "", None
    for number, line in enumerate(text.split("\n"), 1):
        macro = line.split()[0] if line.startswith((".", "'")) and line.split() else ""
        if macro in (".SH", ".Sh"):
            section = line[3:].strip(' "').upper()
        elif macro in BEGINS:
            lines = []
        elif macro in ENDS and lines is not None:
            blocks.append([] if section == "SYNOPSIS" else commands_in(path, dedent(lines), ""))
            lines = None
        elif lines is not None and not macro:
            shown = re.sub(r"\\(e|-| |\(..|f(?:\[\w*\]|\(..|.)|.)", lambda found: ROFF.get(found[1], ""), line)
            lines.append((number, shown))
    return [block for block in blocks if block]
