"""One run of the program."""


class Case:
    """Inputs and options of one run, and what must come of it: an image (`made`, behind the option `draws` if it is none
    of the operands), tables, extracted samples, an exit code and a verdict."""

    def __init__(self, name, options, images, made=None, draws=None, result=None, samples=None, code=0, passed=None):
        self.name, self.options, self.images = name, options, images
        self.made, self.draws, self.result, self.samples = made, draws, result, samples
        self.code, self.passed = code, passed
