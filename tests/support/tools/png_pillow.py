"""Reads PNG files with Pillow: input lines "PNG RAW", one output line each: "good" or the error."""
import sys

from PIL import Image


def samples(path):
    """Return the samples as bytes, and True if they are only the high bytes of 16-bit samples, as
    Pillow returns for most colour types."""
    with open(path, "rb") as file:
        head = file.read(26)
    wide, grey_alpha = head[24] == 16, head[25] == 4
    with Image.open(path) as image:
        image.load()
        if wide and image.mode.startswith("I"):
            values = image.getdata()
            return b"".join(int(v).to_bytes(2, "big") for v in values), False
        if wide and grey_alpha:
            image = image.convert("LA")  # Pillow returns RGBA
        return image.tobytes(), wide


for line in sys.stdin:
    png, raw = line.split()
    with open(raw, "rb") as file:
        wanted = file.read()
    try:
        got, high = samples(png)
        print("good" if got == (wanted[::2] if high else wanted) else png + " has other samples")
    except (OSError, SyntaxError, ValueError) as error:
        print(png, "cannot be read:", error)
