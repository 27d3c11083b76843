"""A run of the program and its expected results."""


class Case:
    """Inputs and options of one run, and the expected results: an image (`made`; `draws` is the option that writes
    it, None if it is an operand), tables, extracted samples, an exit code and a verdict."""

    def __init__(self, name, options, images, made=None, draws=None, result=None, samples=None, code=0, passed=None):
        self.name, self.options, self.images = name, options, images
        self.made, self.draws, self.result, self.samples = made, draws, result, samples
        self.code, self.passed = code, passed
