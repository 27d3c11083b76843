"""What bench/e2e.py measures: the pictures, and the same work as command lines of every program.

Each peer has the lossless PNG setting that was found to be its fastest:
  vips         level 1, Sub (None, Up and precision "approximate" are slower); as the PNG is read in order, "sequential"
  ImageMagick  -quality 11, level 1; ImageMagick 6 takes its 1 as None (-quality 10 is smaller, and slower)
  ffmpeg       level 1, Sub; its frame threads help when there are many pictures
  libpng       level 1, Sub, one thread, and no work between decoding and encoding (bench/codec.c): a floor
"""
import os
import shutil
import subprocess

# smooth's default chain, without its gain, is this filter where nothing rounds; all of them compute it.
TAPS = (3, 6, 11, 11, 11, 8, 5)
OURS = "gpufilter"
FLOOR = "libpng"
MOST_FOR_SLOW = 150_000_000  # pixels; above it ImageMagick and ffmpeg would take minutes and gigabytes


class Picture:
    """One that build/draw makes: --photo, --poster, or --tile (copies of a sample), grey or RGB, 8 or 16 bits."""

    def __init__(self, name, width, height, draw, channels=3, bits=8):
        self.name, self.width, self.height = name, width, height
        self.channels, self.bits = channels, bits
        self.draw = draw

    @property
    def pixels(self):
        return self.width * self.height

    def __str__(self):
        return f"{self.width}x{self.height} {'RGB' if self.channels == 3 else 'grey'} u{self.bits}"


def photo(name, width, height, channels=3, bits=8, seed=1):
    flags = ["--grey"] * (channels == 1) + ["--16"] * (bits == 16)
    draw = flags + ["--photo", str(width), str(height), str(seed)]
    return Picture(name, width, height, draw, channels, bits)


SMALL = photo("photo-1", 1250, 800)
PHOTO = photo("photo-24", 6000, 4000)
DEEP = photo("deep-24", 6000, 4000, channels=1, bits=16)
LARGE = photo("photo-100", 12500, 8000)
HUGE = photo("grey-400", 20000, 20000, channels=1)
SCENE = Picture("scene-18", 5196, 3464, ["--tile", "samples/scene.png", "5196", "3464"])
POSTER = Picture("poster-24", 6000, 4000, ["--poster", "6000", "4000"])
PAGE = Picture("page-23", 4250, 5500, ["--tile", "samples/page.png", "4250", "5500"], channels=1)
DOT = photo("dot", 1, 1)
BATCH_FILES = 500
BATCH = [photo(f"batch-{seed}", 1600, 1250, seed=seed) for seed in range(1, 21)]

# name, what it asks of a program, its picture, is it among --quick
CASES = [
    ("start", "version", None, True),
    ("start-1x1", "smooth", DOT, True),
    ("smooth-1", "smooth", SMALL, True),
    ("smooth-24", "smooth", PHOTO, True),
    ("smooth-24-grey16", "smooth", DEEP, True),
    ("smooth-24-poster", "smooth", POSTER, True),
    ("smooth-23-page", "smooth", PAGE, True),
    ("smooth-18-scene", "smooth", SCENE, False),
    ("smooth-100", "smooth", LARGE, False),
    ("smooth-400-grey", "smooth", HUGE, False),
    ("hist-24", "hist", PHOTO, True),
    ("axis-sum-24", "axis-sum", PHOTO, True),
    (f"batch-{BATCH_FILES}x2", "batch", None, False),
]


class Programs:
    """What is installed: name -> path, and name -> version. `missing` has the names of the others."""

    def __init__(self, build):
        self.path = {OURS: f"{build}/gpufilter", FLOOR: f"{build}/codec"}
        self.missing = []
        # Debian's "convert" may be a link or a script; its own name is not.
        candidates = {"vips": ["vips"], "ImageMagick": ["magick", "convert-im6.q16", "convert"], "ffmpeg": ["ffmpeg"]}
        for name, commands in candidates.items():
            found = next(filter(None, map(shutil.which, commands)), None)
            if found:
                self.path[name] = found
            else:
                self.missing.append(name)
        self.version = {name: self.ask_version(name) for name in self.path}
        text = subprocess.run([self.path[OURS], "smooth", "--help"], stdout=subprocess.PIPE, text=True, check=True)
        self.own_batch = "--out-dir" in text.stdout
        self.name_option = ["--name", "{stem}{ext}"] if "--name" in text.stdout else []

    def version_command(self, name):
        if name == FLOOR:
            return None
        return [self.path[name], "-version" if name in ("ffmpeg", "ImageMagick") else "--version"]

    def ask_version(self, name):
        command = self.version_command(name)
        if not command:
            return None
        answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        return (answer.stdout.splitlines() or ["unknown"])[0]


def convolution(planes):
    taps = " ".join(map(str, TAPS))
    parts = (f"{i}m='{taps}':{i}mode=row:{i}rdiv=1/{sum(TAPS)}" for i in range(planes))
    return "convolution=" + ":".join(parts)


def smooth(name, path, picture, given, made, mask):
    """`given` to `made` by one process; a floor only decodes and encodes."""
    if name == OURS:
        return [path, "smooth", "--backend", "cpu", "--keep-brightness", "--force", "--sync", "never", "--quiet",
                given, made]
    if name == "vips":
        return [path, "conv", given + "[access=sequential]", made + "[compression=1,filter=sub]", mask,
                "--precision", "integer"]
    if name == "ImageMagick":
        kernel = f"{len(TAPS)}x1+3+0: {','.join(map(str, TAPS))}"
        return [path, given, "-define", "convolve:scale=!", "-morphology", "Correlate", kernel, "-quality", "11", made]
    if name == "ffmpeg":
        return [path, "-nostdin", "-loglevel", "error", "-y", "-i", given, "-vf", convolution(picture.channels),
                "-compression_level", "1", "-pred", "sub", made]
    return [path, given, made]


def measure(what, name, path, given, made):
    """hist and axis-sum: the table of ours goes to standard output. Peers count all channels, so ours does too."""
    if name == OURS:
        own = ["--bins", "256", "--channel", "all"] if what == "hist" else ["--axis", "y"]
        return [path, what, "--backend", "cpu", *own, "--csv", given]
    if name == "vips" and what == "hist":
        return [path, "hist_find", given + "[access=sequential]", made + ".v"]
    if name == "vips":  # sums of columns and of rows at once: it has no way to ask for one
        return [path, "project", given + "[access=sequential]", made + "-columns.v", made + "-rows.v"]
    return None


def batch(programs, name, folder, out, mask):
    """All pictures of a folder, which are 000.png and so on, to a folder. Programs without a batch get one process a
    file, as many at once as there are cores."""
    path = programs.path[name]
    cores = len(os.sched_getaffinity(0))
    names = [f"{i:03d}.png" for i in range(BATCH_FILES)]
    if name == OURS and programs.own_batch:
        options = smooth(OURS, path, BATCH[0], "", "", mask)[:-2]
        return options + programs.name_option + ["--out-dir", out] + [f"{folder}/{n}" for n in names]
    if name == "ffmpeg":
        return smooth(name, path, BATCH[0], f"{folder}/%03d.png", f"{out}/%03d.png", mask)[:-1] + [
            "-start_number", "0", f"{out}/%03d.png"]
    single = smooth(name, path, BATCH[0], folder + "/{}", out + "/{}", mask)
    alone = {"vips": "VIPS_CONCURRENCY=1", "ImageMagick": "MAGICK_THREAD_LIMIT=1"}.get(name)
    if name == OURS:
        single += ["--threads", "1"]
    return ["xargs", "-a", f"{folder}.txt", "-P", str(cores), "-I", "{}", *(["env", alone] if alone else []), *single]


def commands(programs, what, picture, given, made, mask):
    """name -> command line, for those programs that can do `what`; ours first."""
    found = {}
    for name, path in programs.path.items():
        if what == "version":
            command = programs.version_command(name)
        elif what == "smooth":
            slow = name in ("ImageMagick", "ffmpeg") and picture.pixels > MOST_FOR_SLOW
            command = None if slow else smooth(name, path, picture, given, made[name] + ".png", mask)
        elif what == "batch":
            command = batch(programs, name, given, made[name], mask)
        else:
            command = measure(what, name, path, given, made[name])
        if command:
            found[name] = command
    return found
