"""Compare the program with a second implementation of every filter, written in NumPy from docs/numerics.md alone.

    tests/system/numpy/check.py BUILD [FILTER...]

The program processes random and adversarial images on every backend of this machine; pixels, JSON and extracted
samples must equal the results of the functions in filters/. GF_TEST_SEED (default: 1) selects the images. One
check is one run of the program. A failed check prints its command line and keeps its files.

A filter is a module in filters/ of the same name: random_case(rng) returns one of its CASES cases, and the
optional published(rng) returns a published check. FIXED lists functions that return cases without random numbers."""

import concurrent.futures
import glob
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import zlib

import numpy as np

from differing import differing_pixels, differing_samples, differing_value, read_json
from arithmetic import declare
from files import extension, read_image, write_image


def all_filters():
    found = glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "filters", "*.py"))
    return sorted(os.path.basename(path)[:-3].replace("_", "-") for path in found)


def load(name):
    return importlib.import_module("filters." + name.replace("-", "_"))


def published_cases(filter_):
    """Return the number of published cases, one per sample type, or of fixed ones."""
    return len(filter_.FIXED) if hasattr(filter_, "FIXED") else 3 if hasattr(filter_, "published") else 0


def case_count(filter_):
    return published_cases(filter_) + int(filter_.CASES * (4 if os.environ.get("GF_TEST_TIER") == "long" else 0.35))


def run(program, directory, case, inputs, backend, npy, spread):
    """Run a case on one backend; return the command line, and the first difference or None."""
    image = case.made is not None and os.path.join(directory, "image-%s" % backend + extension(case.made, npy))
    samples = case.samples is not None and os.path.join(directory, "samples-%s.npy" % backend)
    command = [program, case.name] + spread + case.options
    if backend != "default":
        command += ["--backend", backend]
    if case.result is not None:
        command += ["--json"]
    if samples:
        command += ["--out", samples]
    if image and case.draws:
        command += [case.draws, image]
    command += inputs
    if image and not case.draws:
        command += [image]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=100)
        if done.returncode != case.code:
            message = done.stderr.decode().strip()
            return command, "exit code %d, want %d: %s" % (done.returncode, case.code, message)
        wrong = None
        if case.result is not None:
            record = read_json(done.stdout)
            wrong = differing_value(case.result, record["result"])
            wrong = wrong and "result" + wrong
            if not wrong and case.passed is not None and record["passed"] != case.passed:
                wrong = "passed: got %r" % record["passed"]
        if not wrong and image:
            wrong = differing_pixels(case.made, read_image(image))
        if not wrong and samples:
            wrong = differing_samples(case.samples, np.load(samples))
        return command, wrong
    except (OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired) as error:
        return command, repr(error)


def check(job):
    """Make a case from its own random numbers and run it on every backend; return the number of passed runs and
    the failures."""
    program, directory, backends, seed, name, number = job
    filter_ = load(name)
    published = number < published_cases(filter_)
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    last = str(rng.choice(["a", "a", "data"]))
    declare(last)
    with np.errstate(all="ignore"):
        if published:
            case = filter_.FIXED[number]() if hasattr(filter_, "FIXED") else filter_.published(rng)
        else:
            case = filter_.random_case(rng)
    directory = os.path.join(directory, "%s-%d" % (case.name, number))
    os.mkdir(directory)
    for name, text in case.files.items():
        path = os.path.join(directory, name)
        with open(path, "w") as file:
            file.write(text)
        case.options = [path if option == "@" + name else option for option in case.options]
    npy = rng.choice([None, None, "<", ">"])
    extra = case.images[0].shape[2] in (2, 4)
    if extra and last == "data":
        npy = npy or "<"  # PAM stores the channel as alpha
    inputs = [write_image(os.path.join(directory, "in%d" % i), image, npy) for i, image in enumerate(case.images)]
    spread = ["--threads", str(rng.integers(1, 4))]
    spread += ["--rows-per-strip", str(rng.integers(1, 20))] if rng.random() < 0.5 else []
    spread += ["--alpha", "last"] if extra and last == "a" and inputs[0].endswith(".npy") else []
    runs = [run(program, directory, case, inputs, backend, npy, spread) for backend in backends]
    failures = [" ".join(command) + "\n  " + wrong for command, wrong in runs if wrong]
    if not failures:
        shutil.rmtree(directory)
    return len(runs) - len(failures), failures


BACKENDS = ["golden", "cpu"]


def main(build, *wanted):
    program = os.path.join(build, "gpufilter")
    seed = int(os.environ.get("GF_TEST_SEED", "1"))
    directory = tempfile.mkdtemp(prefix="gpufilter-numpy-")
    cases = [(name, number) for name in wanted or all_filters() for number in range(case_count(load(name)))]
    print("seed %d, %d cases, NumPy %s" % (seed, len(cases), np.__version__))

    jobs = [(program, directory, BACKENDS, seed, name, number) for name, number in cases]
    # The default is one of the backends, and CUDA takes long to start: they run every third case, which includes one
    # published check per filter.
    more = ["default"]
    passed, skipped, failures = 0, 0, []
    probe = write_image(os.path.join(directory, "probe"), np.zeros((1, 1, 1), np.uint8))
    command = [program, "smooth", "--backend", "cuda", probe, os.path.join(directory, "probe.pam")]
    cuda = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    if cuda.returncode == 0:
        more.append("cuda")
    elif os.environ.get("GF_REQUIRE_CUDA"):
        failures.append(" ".join(command) + "\n  " + cuda.stderr.decode().strip())
    else:
        skipped = len(jobs[::3])
        print("SKIP %d: no GPU (%s)" % (skipped, cuda.stderr.decode().strip()))

    jobs[::3] = [(program, directory, BACKENDS + more, *job[3:]) for job in jobs[::3]]
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        for count, failed in pool.map(check, jobs):
            passed += count
            failures += failed
    for failure in failures:
        print("FAIL", failure)
    if not failures:
        shutil.rmtree(directory)
    print("%d passed, %d failed, %d skipped" % (passed, len(failures), skipped))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
