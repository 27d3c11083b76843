"""Pipelines: several steps on arrays and files, parsed by the library."""

from __future__ import annotations

import os
import shlex
from ctypes import byref, c_uint32, c_void_p, string_at
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from . import _library as c
from ._arrays import Stream
from ._files import Outcome, Path, Source, read_file, run_file
from ._functions import batch
from ._library import UsageError, bytes_of, check, free, lib, on_delete
from ._results import PipelineResult
from ._run import Job, Work, run
from ._settings import Use, file_options, given, options_of, text_of

USES = Use.FILTER | Use.WRITE | Use.COPY


class Step(str):
    """The text of a step of a pipeline, which the functions of gpufilter.steps return."""


def make_step(name: str, path: Optional[Path], options: Iterable[Tuple[str, Optional[str]]]
              ) -> Step:
    """Return a step. path: of a second input or an output. options: texts by name; None: a flag."""
    words = [name]
    if path is not None:
        word = os.fsdecode(bytes_of("path", path))
        special = word != "-" and (word[:1] in ("-", "!") or "=" in word)
        words.append("./" + word if special and word[:1] != "/" else word)
    words += [name if text is None else "%s=%s" % (name, text) for name, text in options]
    return Step(" ".join(map(shlex.quote, words)))  # the library quotes as shells do


def filter_step(name: str, filter: str, path: Optional[Path], values: Dict[str, Any]) -> Step:
    """Return a step of a filter with these keywords. name: of the step."""
    options = given(c.FILTERS[filter], values, files=True)
    return make_step(name, path, [(option, None if text is None else os.fsdecode(text))
                                  for option, text in options])


def write_step(path: Path, values: Dict[str, Any]) -> Step:
    """Return a writer with these options."""
    options = options_of(Use.WRITE | Use.COPY)
    return make_step("write", path, [
        (name.replace("_", "-"), None if value is True else text_of(name, value))
        for name, value in values.items() if value not in (None, options[name].default)])


class Parsed:
    """A gf_pipeline. out: path of a last writer. write: options of writers without their own."""

    def __init__(self, text: str, out: Optional[bytes] = None, write: Any = None) -> None:
        if "\0" in text:
            raise UsageError("pipeline: the text contains a NUL character")
        self._kept = out, write
        self.handle, count = c_void_p(), c_uint32()
        check(lib.gf_pipeline_parse, os.fsencode(text), out, write, byref(self.handle))
        on_delete(self, lib.gf_pipeline_free, self.handle)
        self.steps: List[c.gf_step] = lib.gf_pipeline_steps(self.handle, byref(count))[:count.value]

    def __str__(self) -> str:
        text = lib.gf_pipeline_text(self.handle, False)
        if not text:
            raise MemoryError
        try:
            return os.fsdecode(string_at(text))
        finally:
            free(text)


class Pipeline(Work):
    """Steps that an image passes through in one pass, on arrays or files; `pipeline` makes it.

    str(pipeline) is the text that makes the same pipeline, here and for `gpufilter run --steps`.
    """

    def __init__(self, text: str) -> None:
        parsed = Parsed(text)
        job, self.text = Job(parsed.steps, parsed, c.FILES), str(parsed)
        self._second = [os.fsdecode(job.steps[i].in_path) for i in job.seconds]
        self.names = ["image"] + ["input of step %d" % (i + 1) for i in job.seconds]
        self._count, self._unwritten = len(job.steps), job.unwritten

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return "gpufilter.pipeline(%r)" % self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pipeline) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> Tuple[Any, ...]:
        return Pipeline, (self.text,)

    def __call__(self, image: Any, *second: Any, out: Any = None, alpha: Optional[bool] = None,
                 backend: str = "auto", threads: Optional[int] = None,
                 stream: Optional[Stream] = None) -> Any:
        """Run on an array, as the functions of filters do. No file is written.

        Args:
            image: array (H, W), (H, W, C) or a batch (N, H, W, C), as those of filters.
            second: second inputs of compare and dot, in their order. Default: their files are read.
            out: array that receives the image after the last step. Default: a new array.
            alpha, backend, threads, stream: as those of filters.

        Returns:
            the image after the last step, if no step measures and nothing else is written; a list
            of results, if no image is made or written; else a PipelineResult.
        """
        if len(second) > len(self._second):
            raise UsageError("%d second images; the pipeline reads %d"
                             % (len(second), len(self._second)))
        read = [read_file(path, {}, False) for path in self._second[len(second):]]
        return run(self, (image, *second, *read), (), out, backend, stream, alpha, threads)

    def files(self, in_path: Source, out_path: Optional[Path] = None, *, backend: str = "auto",
              threads: Optional[int] = None, **options: Any) -> Any:
        """Run on a file, as `gpufilter run --steps`.

        Args:
            in_path: input file, as those of the functions for files.
            out_path: output file of the image after the last step. Default: only writers write.
            backend, threads, options: as those of the functions for files, such as force.

        Returns:
            what a call on arrays returns, with a Report instead of each image.
        """
        return run_file(self, (in_path,), out_path, {}, options, backend, threads)

    def batch(self, paths: Iterable[Path], out_dir: Optional[Path] = None, **options: Any
              ) -> List[Outcome]:
        """Run on many files: gpufilter.batch with these steps as its filter."""
        return batch(paths, out_dir, self, **options)

    def make_job(self, values: Tuple[Any, ...], memory: int, count: int, form: c.gf_format
                 ) -> Tuple[Job, Any]:
        parsed = Parsed(self.text, b"-" if self._unwritten else None)
        job = Job(parsed.steps, parsed, memory, count)
        return job, job.inspect(form)

    def make_file_job(self, values: Dict[str, Any], out: Optional[bytes], options: Dict[str, Any]
                      ) -> Tuple[Job, c.gf_file_options]:
        for name in (*values, *options):
            if name not in options_of(USES):
                raise TypeError("a pipeline has no keyword %s" % name)
        chosen = file_options(USES, options)
        parsed = Parsed(self.text, out, byref(chosen.write))
        return Job(parsed.steps, parsed, c.FILES), chosen

    def combine(self, job: Job, images: Dict[int, Any], results: Dict[int, Any]) -> Any:
        if not images:
            return list(results.values())
        image = None if job.last is None else images[job.last]
        if not results and len(images) == 1 and image is not None:
            return image
        written = {os.fsdecode(job.steps[i].out_path): images[i]
                   for i in images if i < self._count}
        return PipelineResult(image, list(results.values()), written)


def pipeline(steps: Union[str, Iterable[Union[str, Pipeline]]]) -> Pipeline:
    """Return a pipeline, which runs several steps in one pass.

    Args:
        steps: text such as "median radius=2 ! gaussian sigma=1.5 ! hist bins=8", as on the command
            line of `gpufilter run`; or a list of steps (texts, which the functions of
            gpufilter.steps return) and pipelines.

    Returns:
        a Pipeline: call it on an array, or its methods `files` and `batch` on paths.

    Raises:
        UsageError: a step or an option is invalid.

    Example:
        result = gpufilter.pipeline("median ! gaussian sigma=2")(image)
    """
    return Pipeline(steps if isinstance(steps, str) else "\n".join(map(str, steps)))
