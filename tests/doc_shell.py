"""Runs command lines one after the other in one bash, in a folder made for them (tests/doc_commands.py)."""
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

LIMIT = 300 # seconds a line may take: what hangs is ended


class Shell:
    """A folder as a reader has it: a checkout that was built, and the files that the documents speak of."""

    def __init__(self, build, tree, fixtures):
        self.place = tempfile.mkdtemp(prefix="gpufilter-docs-")
        self.folder = os.path.join(self.place, "here")
        subprocess.run(["cp", "-a", "--sparse=always", fixtures, self.folder], check=True)
        for name in os.listdir(tree):
            os.symlink(os.path.join(tree, name), os.path.join(self.folder, name))
        os.symlink(build, os.path.join(self.folder, "build"))
        os.symlink(os.path.join(build, "gpufilter"), os.path.join(self.folder, "gpufilter"))
        ours, theirs = os.pipe()
        self.codes = os.fdopen(ours, "rb", buffering=0)
        self.bash = subprocess.Popen(["bash", "--norc", "--noprofile"], cwd=self.folder, stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[theirs],
                                     start_new_session=True, env=self.environment(build))
        os.close(theirs)
        self.there, self.hangs = theirs, False

    def environment(self, build):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("GF_", "MAKE", "MFLAGS")) and name not in ("BUILD", "SAN", "MPI")}
        home = os.path.join(self.place, "home")
        os.mkdir(home)
        # CUDA=0: a make that only tells what it would do need not try the compiler each time.
        return {**kept, "PATH": f"{build}:{kept['PATH']}", "LC_ALL": "C", "HOME": home, "TERM": "dumb", "CUDA": "0"}

    def path(self, name):
        return os.path.join(self.place, name)

    def run(self, text):
        """The exit code and standard error of a line; no code if it took too long, or was not begun."""
        if self.bash.poll() is not None or self.hangs:
            return None, "an earlier line of this block " + ("hangs" if self.hangs else "has ended the shell")
        with open(self.path("command"), "w", encoding="utf-8") as file:
            file.write(text + "\n")
        line = (f". '{self.path('command')}' >'{self.path('out')}' 2>'{self.path('err')}' </dev/null {self.there}>&-; "
                f"printf '%s\\n' $? >&{self.there}\n")
        try:
            self.bash.stdin.write(line.encode())
            self.bash.stdin.flush()
        except BrokenPipeError:
            pass
        code = self.answer()
        with open(self.path("err"), encoding="utf-8", errors="replace") as file:
            return code, file.read()

    def answer(self):
        until, told = time.monotonic() + LIMIT, b""
        while not told.endswith(b"\n"):
            if not select.select([self.codes], [], [], max(0, until - time.monotonic()))[0]:
                self.hangs = True
                return None
            some = self.codes.read(100)
            if not some: # the line ended the shell
                return self.bash.wait()
            told += some
        return int(told)

    def forget(self, said, fixtures):
        """Removes outputs of earlier lines that stood in the way of this one; were there any?

        A reader tries examples one after the other, and takes away what the one before has made. What was there from
        the beginning stays.
        """
        removed = False
        for name in re.findall(r"^gpufilter: (.+): exists already", said, re.M):
            path = os.path.join(self.folder, name)
            if not os.path.lexists(os.path.join(fixtures, name)) and os.path.isfile(path):
                os.remove(path)
                removed = True
        return removed

    def files(self):
        return {os.path.join(folder, name) for folder, _, names in os.walk(self.folder) for name in names}

    def session(self):
        """The processes that are left of what was started here, also those that have left its process group."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.getsid(int(pid)) == self.bash.pid:
                    yield int(pid)
            except ProcessLookupError:
                pass

    def end(self):
        if not self.hangs:
            self.bash.stdin.close()
            self.bash.wait()
        for pid in list(self.session()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.bash.wait()
        self.codes.close()
        shutil.rmtree(self.place, ignore_errors=True)
