"""What benchmarks of Python packages share."""

import importlib


def module(name):
    """Import a module, or print that it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        print(f"{name}: not measured ({error})")
        return None
