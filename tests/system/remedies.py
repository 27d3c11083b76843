"""Run the remedies that messages name: remedies.py BUILD.

remedies.txt lists blocks of three lines: a command that is refused, a part of its message, and the remedy as a command.
The remedy must succeed. Every message of the source that contains a remedy must appear in the output of a refused
command, or match a pattern of remedies.txt that states why it cannot."""

import glob
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = os.getcwd()
TOOLS = ("vips", "gdal_translate", "tiff2rgba", "tiffcp", "tiffset", "numpy")
TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[A-Za-z_]\w*|\s+|.", re.S)
CONVERSION = re.compile(r"%(?:%|[-0-9.*]*(?:l|ll|z)?[a-z])")


# ---- inputs ---------------------------------------------------------------------------------------------------------


def tiff(name, width, height, bits, samples, photometric, data, compression=1, kind=1, more=(), pages=1):
    """Write a TIFF of one strip, which is that of each page."""
    tags = {256: (4, [width]), 257: (4, [height]), 258: (3, [bits] * samples), 259: (3, [compression]),
            262: (3, [photometric]), 273: (4, [0]), 277: (3, [samples]), 278: (4, [height]), 279: (4, [len(data)]),
            339: (3, [kind] * samples), **dict(more)}
    if photometric is None:
        del tags[262]
    size, at = {1: 1, 2: 1, 3: 2, 4: 4, 7: 1}, 8 + 2 + 12 * len(tags) + 4
    entries, extra = b"", b""
    for tag, (form, values) in sorted(tags.items()):
        if tag in (273, 513):
            values = [-1]  # the data, which follows
        packed = struct.pack("<%d%s" % (len(values), {1: "B", 2: "B", 3: "H", 4: "i", 7: "B"}[form]), *values)
        if size[form] * len(values) > 4:
            packed, extra = struct.pack("<I", at + len(extra)), extra + packed + b"\0" * (len(packed) % 2)
        entries += struct.pack("<HHI", tag, form, len(values)) + packed.ljust(4, b"\0")
    start = struct.pack("<I", at + len(extra))
    for tag in (273, 513):
        entries = entries.replace(struct.pack("<HHIi", tag, 4, 1, -1), struct.pack("<HHI", tag, 4, 1) + start)
    directory = struct.pack("<H", len(tags)) + entries
    second = struct.pack("<I", at + len(extra + data) if pages > 1 else 0)
    with open(name, "wb") as file:
        file.write(b"II*\0\x08\0\0\0" + directory + second + extra + data)
        file.write(directory + b"\0\0\0\0" if pages > 1 else b"")


def npy(name, dtype, shape, data, version=1, order=False):
    text = "{'descr': %s, 'fortran_order': %s, 'shape': %s, }" % (dtype, order, shape)
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(text)) + text.encode() + data)


def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(name, *chunks):
    """Write a grey PNG of 2 x 2 pixels with these chunks before and after the pixels."""
    before, after = chunks
    rows = png_chunk(b"IDAT", zlib.compress(b"\0\1\2\0\3\4"))
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 0, 0, 0, 0))
    with open(name, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + head + before + rows + after + png_chunk(b"IEND", b""))


def make_inputs():
    noise = bytes(i * 37 % 251 for i in range(4096))
    for name, photometric, samples in (("cmyk", 5, 4), ("lab", 8, 3), ("icclab", 9, 3), ("ycbcr", 6, 3)):
        more = {530: (3, [1, 1])} if name == "ycbcr" else {}
        tiff(name + ".tif", 8, 6, 8, samples, photometric, noise[:48 * samples], more=more.items())
    for name, photometric in (("mask", 4), ("cfa", 32803)):
        tiff(name + ".tif", 8, 6, 8, 1, photometric, noise[:48])
    real = struct.pack("<48f", *[i / 64 for i in range(48)])
    tiff("complex.tif", 4, 6, 64, 1, 1, real, kind=6)
    tiff("pages.tif", 8, 6, 8, 1, 1, noise[:48])
    tiff("undeclared.tif", 8, 6, 8, 2, None, noise[:96])
    tiff("undeclared4.tif", 8, 6, 8, 4, None, noise[:192])
    tiff("white.tif", 4, 6, 32, 1, 0, struct.pack("<24f", *[i / 24 for i in range(24)]), kind=3)
    tiff("white16.tif", 4, 6, 16, 1, 0, struct.pack("<24h", *range(-12, 12)), kind=2)
    tiff("palette.tif", 8, 6, 8, 2, 3, noise[:96], more={338: (3, [2]), 320: (3, [i * 257 for i in range(256)] * 3)}.items())
    tiff("slices.tif", 8, 6, 8, 1, 1, noise[:48], more={32997: (4, [2])}.items())
    tiff("odd.tif", 8, 6, 8, 1, 999, noise[:48])
    tiff("deep.tif", 4, 4, 24, 1, 1, noise[:48])
    tiff("two.tif", 8, 6, 8, 1, 1, noise[:48], pages=2)
    tiff("bands.tif", 4, 3, 8, 5, 1, noise[:60], more={338: (3, [0] * 4)}.items())
    tiff("nodata.tif", 8, 6, 8, 1, 1, noise[:48], more={42113: (2, list(b"0\0"))}.items())
    tiff("premultiplied.tif", 4, 3, 8, 4, 2, bytes([10, 20, 30, 40] * 12), more={338: (3, [1])}.items())
    subprocess.run(["gpufilter", "smooth", "-q", "-k", "samples/scene.png", "scene.jpg"], check=True)
    with open("scene.jpg", "rb") as file:
        jpeg = file.read()
    tiff("old.tif", 768, 512, 8, 3, 6, jpeg, compression=6,
         more={513: (4, [0]), 514: (4, [len(jpeg)]), 530: (3, [1, 1])}.items())
    npy("complex.npy", "'<c8'", (2, 3), bytes(48))
    npy("fields.npy", "[('value', '<f4'), ('n', '<i4')]", (2, 3), bytes(48))
    npy("line.npy", "'|u1'", (6,), bytes(6))
    npy("integers.npy", "'<i4'", (2, 3), bytes(24))
    npy("large.npy", "'|u1'", (1 << 40, 2, 3, 1), b"")
    npy("empty.npy", "'|u1'", (0, 2, 3, 1), b"")
    npy("future.npy", "'|u1'", (2, 3), bytes(6), version=4)
    orientation = b"MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"
    png("late.png", b"", png_chunk(b"eXIf", orientation))
    png("big.png", png_chunk(b"tEXt", b"a\0" + b"x" * 3000), b"")
    png("profile.png", png_chunk(b"iCCP", b"p\0\0" + zlib.compress(bytes(128) + noise[:100])), b"")
    png("gamma.png", png_chunk(b"gAMA", struct.pack(">I", 100000)), b"")
    for name, text in (("grey.pgm", b"P5\n3 2\n255\nabcdef"), ("other.pgm", b"P5\n2 3\n255\nabcdef"),
                       ("colour.ppm", b"P6\n1 2\n255\nabcdef"), ("minus.pfm", b"Pf\n2 1\n-1\n" + struct.pack("<2f", -1, 2)),
                       ("nan.pfm", b"Pf\n1 1\n-1\n" + struct.pack("<f", float("nan"))), ("a.raw", b"abcdef"), ("list.txt", b"grey.pgm\0other.pgm\0"), ("noise.xyz", b"no image")):
        with open(name, "wb") as file:
            file.write(text)
    os.makedirs("pictures/below")
    os.makedirs("twice/below")
    for name in ("pictures/a.pgm", "pictures/below/b.pgm", "twice/grey.pgm", "twice/below/grey.pgm"):
        shutil.copy("grey.pgm", name)
    os.symlink("nowhere", "dangling.png")


# ---- messages of the source -------------------------------------------------------------------------------------------


def messages():
    """Yield the texts with a remedy in calls of functions that fail."""
    files = glob.glob(ROOT + "/src/**/*.c", recursive=True) + glob.glob(ROOT + "/filters/**/*.c", recursive=True)
    for path in sorted(files):
        with open(path, encoding="utf-8") as file:
            source = file.read()
        text, calls, last = "", [], ""
        for token in TOKEN.findall(source):
            if token.isspace() or token.startswith(("/*", "//")):
                continue
            if token.startswith("PRI"):
                text += "d"
            elif token.startswith('"'):
                text += token[1:-1]
            else:
                if re.search(r"; .", text) and any(re.search("fail|set_error|note|damage", call) for call in calls):
                    yield os.path.relpath(path, ROOT), text
                text = ""
                if token == "(":
                    calls.append(last)
                elif token == ")" and calls:
                    calls.pop()
                last = token


def pattern_of(message):
    """Return an expression that matches the printed message."""
    text = "".join(".*" if CONVERSION.fullmatch(part) else re.escape(part)
                   for part in re.split("(%s)" % CONVERSION.pattern, message.replace("\\n", "")))
    return re.compile(text)


# ---- running ------------------------------------------------------------------------------------------------------------


def blocks(path):
    """Return the blocks (refused command, part of its message, remedy), and the patterns of messages that no block has."""
    found, unused, block = [], [], []
    with open(path, encoding="utf-8") as file:
        for line in file:
            mark, text = line[:2], line[2:].rstrip("\n")
            if mark in ("$ ", "! ", "> "):
                block.append(text)
            elif mark == "- ":
                unused.append(text)
            if len(block) == 3:
                found.append(block)
                block = []
    return found, unused


def shell(command):
    done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def missing(command):
    """Return a tool that the command needs and that is not installed, or None."""
    for tool in TOOLS:
        if re.search(r"\b%s\b" % tool, command):
            found = shell("python3 -c 'import numpy'")[0] == 0 if tool == "numpy" else shutil.which(tool)
            if not found:
                return tool
    return None


def main():
    build = sys.argv[1]
    os.environ["PATH"] = build + ":" + os.environ["PATH"]
    table, unused = blocks(ROOT + "/tests/system/remedies.txt")
    work = tempfile.mkdtemp()
    passed = failed = skipped = 0
    printed, absent = [], []
    try:
        os.chdir(work)
        os.symlink(ROOT + "/samples", "samples")
        make_inputs()
        for refused, part, remedy in table:
            code, text = shell(refused)
            printed += text.splitlines()
            tool = missing(refused + " " + remedy)
            problem = "" if tool or (code and part in text) else "exit code %d, message %s" % (code, text.strip())
            if not problem and not tool:
                code, text = shell(remedy)
                problem = "" if code == 0 else "the remedy fails, exit code %d: %s\n%s" % (code, remedy, text.strip())
            if problem:
                failed += 1
                print("FAIL %s\n  expected: %s\n  %s" % (refused, part, problem))
            elif tool:
                skipped += 1
                absent += [part] if missing(refused) else []
                print("SKIP 1: no %s for: %s" % (tool, remedy))
            else:
                passed += 1
        usable = passed
        for path, message in messages():
            pattern = pattern_of(message)
            run = any(pattern.search(line) for line in printed)
            told = any(re.search(text, message) for text in unused) or any(part in message for part in absent)
            passed += run or told
            if not (run or told):
                failed += 1
                print("FAIL %s: no remedy was run, and remedies.txt has no reason: %s" % (path, message))
    finally:
        os.chdir(ROOT)
        shutil.rmtree(work)
    print("remedies: %d named, %d usable, %d without their tool" % (len(table), usable, skipped))
    print("%d passed, %d failed, %d skipped" % (passed, failed, skipped))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
