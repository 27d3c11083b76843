"""A run of the program and its expected results."""


class Case:
    """Inputs and options of one run, and the expected results: an image (`made`; `draws` is the option that writes
    it, None if it is an operand), tables, extracted samples, an exit code and a verdict. files: texts of files by name; the option "@NAME" becomes
    the path of one."""

    def __init__(self, name, options, images, made=None, draws=None, result=None, samples=None, code=0, passed=None,
                 files=None):
        self.name, self.options, self.images = name, options, images
        self.made, self.draws, self.result, self.samples = made, draws, result, samples
        self.code, self.passed, self.files = code, passed, files or {}
