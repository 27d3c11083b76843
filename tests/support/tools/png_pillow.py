"""Reads PNG files by Pillow: lines "PNG RAW" in, "good" or what is wrong out, one line each."""
import sys

from PIL import Image


def samples(path):
    """The samples as bytes, and whether they are the high bytes of 16 bits: Pillow keeps no more of
    most kinds of images."""
    with open(path, "rb") as file:
        head = file.read(26)
    wide, grey_alpha = head[24] == 16, head[25] == 4
    with Image.open(path) as image:
        image.load()
        if wide and image.mode.startswith("I"):
            values = image.getdata()
            return b"".join(int(v).to_bytes(2, "big") for v in values), False
        if wide and grey_alpha:
            image = image.convert("LA")  # which Pillow made RGBA
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
