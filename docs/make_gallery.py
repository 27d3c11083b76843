#!/usr/bin/env python3
"""Writes the gallery: make_gallery.py [--numbers] GPUFILTER FOLDER README

Every filter has a gallery.txt in its folder, of such lines:

    # a heading
    words of a paragraph
    + the caption of a picture
    $ a command; the last one of a picture makes it
    = a sample, instead of a command
    $ without a caption: commands that are shown with what they print

Each picture's, and each block's, commands run in an empty folder with samples/, so that all work as they are printed.
FOLDER gets gallery.md and pictures/, the README its table of filters. With --numbers, for tests, no plot is drawn, since
no two versions of cairo draw the same: its numbers go to NAME.svg.csv instead, and FOLDER/commands lists the pictures
and what makes them.
"""
import argparse
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE, WIDEST, PLOT = 900, 288, 440  # widths in pixels: of a row of pictures, of one, of a plot
MARGINS = 26  # what GitHub leaves beside one
HEAD = """# Gallery

What each filter does, to be seen. `make docs` writes this page from `filters/*/gallery.txt`: it runs the commands
that are shown here, and keeps their pictures in [pictures/](pictures). They work as they are printed in a folder
with [samples/](../samples).
"""
EXPECTED = {"compare": (0, 1)}  # exit codes that are no failure: 1 says that images differ


class Picture:
    def __init__(self, caption):
        self.caption, self.commands, self.sample = caption, [], None


def fail(what):
    sys.exit("make_gallery: " + what)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text, mode="w"):
    with open(path, mode, encoding="utf-8") as file:
        file.write(text)


# ---- reading --------------------------------------------------------------------------------------


def parse(path):
    """A list of ("text", line), ("pictures", [Picture, ...]) and ("block", [command, ...])."""
    parts, picture = [], None

    def into(kind, thing):
        if not parts or parts[-1][0] != kind:
            parts.append((kind, []))
        parts[-1][1].append(thing)

    for line in read(path).splitlines():
        mark, rest = line[:2], line[2:]
        if mark == "+ ":
            picture = Picture(rest)
            into("pictures", picture)
        elif mark == "= " and picture:
            picture.sample = rest
        elif mark == "$ " and picture:
            picture.commands.append(rest)
        elif mark == "$ ":
            into("block", rest)
        else:
            picture = None
            parts.append(("text", "### " + rest if mark == "# " else line))
    return parts


# ---- running --------------------------------------------------------------------------------------


def run(command, folder):
    """Its standard output and error."""
    made = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    if made.returncode not in EXPECTED.get(shlex.split(command)[1], (0,)):
        fail("%s: exit code %d\n%s" % (command, made.returncode, made.stdout))
    return made.stdout


def plotted(command):
    """The plot that a command draws, and the command that prints its numbers instead; or two times None."""
    found = re.search(r" --plot (\S+)", command)
    if not found:
        return None, None
    return found.group(1), re.sub(r" (-q|--log)(?= )", "", command.replace(found.group(0), "")) + " --csv"


class Room:
    """An empty folder with the samples."""

    def __enter__(self):
        self.path = tempfile.mkdtemp()
        os.symlink(os.path.join(ROOT, "samples"), os.path.join(self.path, "samples"))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)


def draw(picture, folder, numbers):
    """Runs what makes a picture, puts it into the folder, and says how it is called there."""
    with Room() as room:
        made = []
        for command in picture.commands:
            before = set(os.listdir(room.path))
            plot, instead = plotted(command) if numbers else (None, None)
            text = run(instead or command, room.path)
            if instead:
                write(os.path.join(room.path, plot), text)
            made = sorted(set(os.listdir(room.path)) - before)
        if len(made) != 1 or not made[0].endswith((".png", ".svg")):
            fail("%s: its last command must make one .png or .svg" % picture.caption)
        target = os.path.join(folder, made[0] + (".csv" if plot and numbers else ""))
        if os.path.exists(target):
            fail("%s: %s is there already" % (picture.caption, made[0]))
        os.makedirs(folder, exist_ok=True)
        shutil.copyfile(os.path.join(room.path, made[0]), target)
    return made[0]


# ---- writing --------------------------------------------------------------------------------------


def width_of(path):
    if path.endswith(".svg"):
        return PLOT
    with open(path, "rb") as file:
        return min(WIDEST, struct.unpack(">I", file.read(20)[16:])[0])


def cell(picture, name, out, numbers):
    """Its width, and a cell of a table: the picture, its caption, and what makes it."""
    if picture.sample:
        place, link = os.path.join(ROOT, picture.sample), "../" + picture.sample
    else:
        file = draw(picture, os.path.join(out, "pictures", name), numbers)
        place, link = os.path.join(out, "pictures", name, file), "pictures/%s/%s" % (name, file)
        if numbers:
            write(os.path.join(out, "commands"), "%s\t%s\n" % (link, picture.commands[-1]), "a")
    width = width_of(place)
    plain = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", picture.caption)
    image = '<img src="%s" width="%d" alt="%s">' % (link, width, plain)
    lines = [image, picture.caption] + ["`%s`" % command for command in picture.commands or [picture.sample]]
    return width, '<td width="%d" valign="top">\n\n%s\n\n</td>' % (width + MARGINS, "<br>\n".join(lines))


def tables(pictures, name, out, numbers):
    """A table for as many pictures as lie side by side. GitHub reads Markdown in it after an empty line."""
    rows, left = [], 0
    for picture in pictures:
        width, text = cell(picture, name, out, numbers)
        if width > left:
            rows.append([])
            left = PAGE
        rows[-1].append(text)
        left -= width
    return ["<table><tr>\n%s\n</tr></table>\n" % "\n".join(row) for row in rows]


def block(commands):
    with Room() as room:
        return "```console\n%s```" % "".join("$ %s\n%s" % (command, run(command, room.path)) for command in commands)


def section(name, parts, out, numbers):
    lines = []
    for kind, what in parts:
        if kind == "text":
            lines.append(what)
        elif kind == "block":
            lines.append(block(what))
        else:
            lines += tables(what, name, out, numbers)
    return "\n".join(lines).rstrip() + "\n"


def filters():
    """Names and summaries, as the program's help lists them."""
    text = subprocess.run(["gpufilter", "--help"], stdout=subprocess.PIPE, encoding="utf-8",
                          check=True).stdout
    listed = re.search(r"^Filters:\n((?:  .*\n)*)", text, re.M).group(1)
    return [line.split(None, 1) for line in listed.splitlines()]


def write_table(path, known):
    """Into the README, in the place of the table of filters there."""
    head = "| filter | what it does |\n|---|---|\n"
    rows = "".join("| [`%s`](docs/gallery.md#%s) | %s |\n" % (name, name, what) for name, what in known)
    text, count = re.subn(re.escape(head) + r"(?:\|.*\n)*", lambda _: head + rows, read(path))
    if count != 1:
        fail("%s: has no table of filters" % path)
    write(path, text)


def write_gallery(out, known, numbers):
    pages = [HEAD]
    for name, what in known:
        path = os.path.join(ROOT, "filters", name.replace("-", "_"), "gallery.txt")
        if not os.path.exists(path):
            fail("%s is missing" % path)
        pages.append("## %s\n\n%s%s.\n\n" % (name, what[0].upper(), what[1:]) +
                     section(name, parse(path), out, numbers))
    write(os.path.join(out, "gallery.md"), "\n".join(pages))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0].split(": ")[1])
    parser.add_argument("--numbers", action="store_true")
    parser.add_argument("gpufilter")
    parser.add_argument("folder")
    parser.add_argument("readme")
    args = parser.parse_args()
    os.environ["PATH"] = os.path.dirname(os.path.abspath(args.gpufilter)) + ":" + os.environ["PATH"]
    os.environ["LC_ALL"] = "C.UTF-8"
    known = filters()
    with tempfile.TemporaryDirectory() as made:  # nothing is replaced before all is made
        write_gallery(made, known, args.numbers)
        write_table(args.readme, known)
        shutil.rmtree(os.path.join(args.folder, "pictures"), ignore_errors=True)
        os.chmod(made, os.stat(args.folder).st_mode)  # copytree gives the folder the mode of what it copies
        shutil.copytree(made, args.folder, dirs_exist_ok=True)


main()
