"""The command gpufilter of a wheel: runs the program in this directory."""

import os
import sys


def main() -> None:
    """Replace this process by the program."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpufilter")
    try:
        os.execv(program, [program, *sys.argv[1:]])
    except OSError as failure:
        sys.exit("gpufilter: %s: cannot run: %s" % (program, failure.strerror))
