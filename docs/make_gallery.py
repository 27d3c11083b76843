#!/usr/bin/env python3
"""Generate the gallery: make_gallery.py [--numbers] GPUFILTER DIRECTORY README

Input: filters/NAME/gallery.txt, one for each filter. Its lines:

    # heading
    text of a paragraph
    + caption of a picture
    $ command of the picture above; the last command writes the picture
    = sample file, instead of commands
    $ command without a caption: shown with its output

The commands of each picture and each block run in an empty directory that contains samples/; therefore they work as printed.
Output: DIRECTORY/gallery.md, DIRECTORY/pictures/, and the table of filters in README.

--numbers is for tests. It draws no plots, because their pixels depend on the version of cairo. It writes the plotted numbers
to NAME.svg.csv instead, and lists pictures and their commands in DIRECTORY/commands.
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
PAGE, WIDEST, PLOT = 900, 288, 440  # widths in pixels: row of pictures, widest picture, plot
MARGINS = 26  # pixels that GitHub adds to each cell
HEAD = """# Gallery

For users: the effect of each filter and its options, as pictures. `make docs` generates this page from
`filters/*/gallery.txt`. It runs the commands shown here and stores their pictures in [pictures/](pictures). The commands work
as printed in a directory that contains [samples/](../samples).
"""
EXPECTED = {"compare": (0, 1)}  # valid exit codes; 1: the images differ


class Picture:
    def __init__(self, caption):
        self.caption, self.commands, self.sample = caption, [], None


def fail(message):
    sys.exit("make_gallery: " + message)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text, mode="w"):
    with open(path, mode, encoding="utf-8") as file:
        file.write(text)


# ---- reading --------------------------------------------------------------------------------------


def parse(path):
    """Return a list of ("text", line), ("pictures", [Picture, ...]) and ("block", [command, ...])."""
    parts, picture = [], None

    def append(kind, item):
        if not parts or parts[-1][0] != kind:
            parts.append((kind, []))
        parts[-1][1].append(item)

    for line in read(path).splitlines():
        mark, rest = line[:2], line[2:]
        if mark == "+ ":
            picture = Picture(rest)
            append("pictures", picture)
        elif mark == "= " and picture:
            picture.sample = rest
        elif mark == "$ " and picture:
            picture.commands.append(rest)
        elif mark == "$ ":
            append("block", rest)
        else:
            picture = None
            parts.append(("text", "### " + rest if mark == "# " else line))
    return parts


# ---- running --------------------------------------------------------------------------------------


def run(command, directory):
    """Run a command and return its standard output and error."""
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=directory, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    if done.returncode not in EXPECTED.get(shlex.split(command)[1], (0,)):
        fail("%s: exit code %d\n%s" % (command, done.returncode, done.stdout))
    return done.stdout


def plotted(command):
    """Return the plot file of a command and the command that prints its numbers; (None, None) without a plot."""
    found = re.search(r" --plot (\S+)", command)
    if not found:
        return None, None
    return found.group(1), re.sub(r" (-q|--log-scale)(?= )", "", command.replace(found.group(0), "")) + " --csv"


class Workspace:
    """A temporary directory that contains samples/."""

    def __enter__(self):
        self.path = tempfile.mkdtemp()
        os.symlink(os.path.join(ROOT, "samples"), os.path.join(self.path, "samples"))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)


def draw(picture, directory, numbers):
    """Run the commands of a picture, copy the picture into the directory and return its name."""
    with Workspace() as space:
        created = []
        for command in picture.commands:
            before = set(os.listdir(space.path))
            plot, csv_command = plotted(command) if numbers else (None, None)
            text = run(csv_command or command, space.path)
            if csv_command:
                write(os.path.join(space.path, plot), text)
            created = sorted(set(os.listdir(space.path)) - before)
        if len(created) != 1 or not created[0].endswith((".png", ".svg")):
            fail("%s: the last command must write exactly one .png or .svg" % picture.caption)
        target = os.path.join(directory, created[0] + (".csv" if plot and numbers else ""))
        if os.path.exists(target):
            fail("%s: %s already exists" % (picture.caption, created[0]))
        os.makedirs(directory, exist_ok=True)
        shutil.copyfile(os.path.join(space.path, created[0]), target)
    return created[0]


# ---- writing --------------------------------------------------------------------------------------


def width_of(path):
    if path.endswith(".svg"):
        return PLOT
    with open(path, "rb") as file:
        return min(WIDEST, struct.unpack(">I", file.read(20)[16:])[0])


def cell(picture, name, out, numbers):
    """Return the width and text of a table cell: the picture, its caption and its commands."""
    if picture.sample:
        path, link = os.path.join(ROOT, picture.sample), "../" + picture.sample
    else:
        file = draw(picture, os.path.join(out, "pictures", name), numbers)
        path, link = os.path.join(out, "pictures", name, file), "pictures/%s/%s" % (name, file)
        if numbers:
            write(os.path.join(out, "commands"), "%s\t%s\n" % (link, picture.commands[-1]), "a")
    width = width_of(path)
    plain = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", picture.caption)
    image = '<img src="%s" width="%d" alt="%s">' % (link, width, plain)
    lines = [image, picture.caption] + ["`%s`" % command for command in picture.commands or [picture.sample]]
    return width, '<td width="%d" valign="top">\n\n%s\n\n</td>' % (width + MARGINS, "<br>\n".join(lines))


def tables(pictures, name, out, numbers):
    """Return one table per row of pictures. GitHub renders Markdown in a cell after an empty line."""
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
    with Workspace() as space:
        return "```console\n%s```" % "".join("$ %s\n%s" % (command, run(command, space.path)) for command in commands)


def section(name, parts, out, numbers):
    lines = []
    for kind, content in parts:
        if kind == "text":
            lines.append(content)
        elif kind == "block":
            lines.append(block(content))
        else:
            lines += tables(content, name, out, numbers)
    return "\n".join(lines).rstrip() + "\n"


def filters():
    """Return the names and summaries of all filters from the help of the program."""
    text = subprocess.run(["gpufilter", "--help"], stdout=subprocess.PIPE, encoding="utf-8",
                          check=True).stdout
    listed = re.search(r"^Filters:\n((?:  .*\n)*)", text, re.M).group(1)
    return [line.split(None, 1) for line in listed.splitlines()]


def write_table(path, known):
    """Replace the table of filters in the README."""
    head = "| filter | what it does |\n|---|---|\n"
    rows = "".join("| [`%s`](docs/gallery.md#%s) | %s |\n" % (name, name, summary) for name, summary in known)
    text, count = re.subn(re.escape(head) + r"(?:\|.*\n)*", lambda _: head + rows, read(path))
    if count != 1:
        fail("%s: no table of filters found" % path)
    write(path, text)


def write_gallery(out, known, numbers):
    pages = [HEAD]
    for name, summary in known:
        path = os.path.join(ROOT, "filters", name.replace("-", "_"), "gallery.txt")
        if not os.path.exists(path):
            fail("%s is missing" % path)
        pages.append("## %s\n\n%s%s.\n\n" % (name, summary[0].upper(), summary[1:]) +
                     section(name, parse(path), out, numbers))
    write(os.path.join(out, "gallery.md"), "\n".join(pages))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0].split(": ")[1])
    parser.add_argument("--numbers", action="store_true")
    parser.add_argument("gpufilter")
    parser.add_argument("directory")
    parser.add_argument("readme")
    args = parser.parse_args()
    os.environ["PATH"] = os.path.dirname(os.path.abspath(args.gpufilter)) + ":" + os.environ["PATH"]
    os.environ["LC_ALL"] = "C.UTF-8"
    known = filters()
    with tempfile.TemporaryDirectory() as new:  # replace files only after all are generated
        write_gallery(new, known, args.numbers)
        write_table(args.readme, known)
        shutil.rmtree(os.path.join(args.directory, "pictures"), ignore_errors=True)
        os.chmod(new, os.stat(args.directory).st_mode)  # copytree copies the mode of the source directory
        shutil.copytree(new, args.directory, dirs_exist_ok=True)


main()
