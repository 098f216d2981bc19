"""A safety suite that runs uncompiled in one process and its forks: for tests/mutants.py.

Modules are loaded and tests collected once; what is tried is tried in a fork. While a test is measured, every
statement of the core marks that it ran (one byte each, in code objects that take the place of the true ones), so that
one run tells which statements a test runs and how long it takes. Lines of the core are known by the first line of the
statement that they belong to.
"""

from __future__ import annotations

import ast
import gc
import json
import os
import resource
import signal
import time
import types
from pathlib import Path

SLOW = 1.0  # seconds of the processor, uncompiled: tests that take longer are not in the suite
_ALIKE = 8  # of one test with other parameters so many, spread over all of them
_EXAMPLES = 15
_MEMORY = 3 << 30  # bytes more than the first process has
_SEEN = "__statements_that_ran__"


class Suite:
    """Tests, and how to run them in this process."""

    def __init__(self):
        self.items = None

    def pytest_collection_finish(self, session):
        """Take the tests that were collected."""
        from hypothesis import Phase, settings

        settings.register_profile(
            "mutants", settings.get_profile("triscreen"), max_examples=_EXAMPLES, database=None,
            phases=[Phase.explicit, Phase.generate],
        )  # fmt: skip
        settings.load_profile("mutants")
        kinds = {}
        for item in session.items:
            kinds.setdefault(item.nodeid.partition("[")[0], []).append(item)
        some = [alike[:: -(-len(alike) // _ALIKE)] for alike in kinds.values()]
        self.items = {item.nodeid: item for alike in some for item in alike}

    def pytest_runtestloop(self, session):
        """Do all of it in place of running the tests."""
        self.work(self)
        return True

    def fails(self, names, seconds):
        """Run tests in this process until one fails; return its name, or None. seconds: limit for each."""
        failed = []

        class Ears:
            def pytest_runtest_logreport(self, report):
                if report.failed:
                    failed.append(report.nodeid)

        manager = next(iter(self.items.values())).config.pluginmanager
        manager.register(Ears())
        for name in names:
            item = self.items[name]
            signal.setitimer(signal.ITIMER_PROF, seconds(name))  # of the processor
            signal.setitimer(signal.ITIMER_REAL, 60 + 20 * seconds(name))  # whoever waits for ever
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if failed:
                break
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return failed[0] if failed else None

    def measure(self, name, core):
        """Run one test: (seconds or None, {module: first lines of its statements that ran})."""
        seen = core.watch()
        begin = time.process_time()
        failed = self.fails([name], lambda _: SLOW + 0.5)
        took = time.process_time() - begin
        if failed or took > SLOW:
            return None, {}
        return took, {module: [line for line, ran in enumerate(seen[module]) if ran] for module in seen}


class Core:
    """The functions that are mutated, as they are in this process."""

    def __init__(self, files):
        """files: {module: path}."""
        self.files = {module: str(file) for module, file in files.items()}
        self.source = {module: Path(file).read_text() for module, file in self.files.items()}
        self.functions = self._functions()
        self.spans, self.statements, self._watching = {}, {}, []
        for module, source in self.source.items():
            codes = [code for _, code in _codes_of(compile(source, self.files[module], "exec"))]
            self.spans[module] = sorted((code.co_firstlineno, _last_line(code), code.co_name) for code in codes)
            self.statements[module] = _statements(source)

    def _functions(self):
        """Return {(module, first line): [functions]} of the core, all of what refers to the same code."""
        found, modules = {}, {file: module for module, file in self.files.items()}
        for thing in gc.get_objects():
            if isinstance(thing, types.FunctionType) and thing.__code__.co_filename in modules:
                code = thing.__code__
                found.setdefault((modules[code.co_filename], code.co_firstlineno), []).append(thing)
        return found

    def put(self, mutant, tree):
        """Exchange the code of the function that a mutant changes."""
        old = self.around(mutant)
        for _, code in _codes_of(compile(tree, self.files[mutant.file], "exec")):
            if code.co_firstlineno == old:
                for function in self.functions[mutant.file, old]:
                    if function.__code__.co_name == code.co_name:
                        function.__code__ = code
                return True
        return False

    def around(self, mutant):
        """Return the first line of the outermost function around a mutant that exists as an object."""
        lines = [
            first for first, last, name in self.spans[mutant.file]
            if first <= mutant.line <= last and (mutant.file, first) in self.functions and name != "<lambda>"
        ]  # fmt: skip
        return min(lines) if lines else None

    def statement(self, mutant):
        """Return the first line of the innermost statement that holds a mutant."""
        around = [first for first, last in self.statements[mutant.file] if first <= mutant.line <= last]
        return max(around, default=None)

    def watched(self):
        """Compile every module once more, with marks; what `watch` exchanges."""
        for module, source in self.source.items():
            tree = ast.fix_missing_locations(_Marks().visit(ast.parse(source)))
            for _, code in _codes_of(compile(tree, self.files[module], "exec")):
                for function in self.functions.get((module, code.co_firstlineno), ()):
                    if function.__code__.co_name == code.co_name:
                        self._watching.append((module, function, code))

    def watch(self):
        """Have every statement of the core mark that it ran, in this process; return {module: marks by line}."""
        seen = {module: bytearray(source.count("\n") + 2) for module, source in self.source.items()}
        for module, function, code in self._watching:
            function.__globals__[_SEEN] = seen[module]
            function.__code__ = code
        return seen


class _Marks(ast.NodeTransformer):
    """A mark before every statement of a function."""

    def __init__(self):
        self.inside = 0

    def visit_FunctionDef(self, node):
        self.inside += 1
        self.generic_visit(node)
        self.inside -= 1
        return self._marked(node)

    def generic_visit(self, node):
        super().generic_visit(node)
        return self._marked(node) if isinstance(node, ast.stmt) else node

    def _marked(self, node):
        if not self.inside or isinstance(node, ast.Nonlocal | ast.Global):
            return node
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return node
        return [ast.copy_location(new, node) for new in ast.parse(f"{_SEEN}[{node.lineno}] = 1").body] + [node]


def _statements(source):
    """Give (first line, last line of its head) of every statement."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            found.append((node.lineno, max(node.lineno, body[0].lineno - 1) if body else node.end_lineno))
    return sorted(found)


def _codes_of(code):
    """Give every code object of a function in a module, with its name."""
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield const.co_name, const
            yield from _codes_of(const)


def _last_line(code):
    own = [line for *_, line in code.co_lines() if line]
    inner = [_last_line(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return max([*own, *inner], default=code.co_firstlineno)


def fork(work):
    """Do some work in a process of its own; return (its number, the file where its answer will be)."""
    place = os.memfd_create("answer")
    child = os.fork()
    if child:
        return child, place
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    for number in (signal.SIGALRM, signal.SIGPROF):  # the end of whoever takes too long
        signal.signal(number, signal.SIG_DFL)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + _MEMORY, resource.RLIM_INFINITY))
    answer = json.dumps(work()).encode()
    with os.fdopen(place, "wb") as stream:
        stream.write(answer)
    os._exit(0)


def _answer_of(place):
    """Return what a fork answered; None: it died."""
    with os.fdopen(place, "rb") as stream:
        stream.seek(0)
        said = stream.read()
    return json.loads(said) if said else None


def in_parallel(tasks, workers, done):
    """Run (key, work) in so many forks at a time; done(key, answer, status) of each."""
    gc.collect()
    gc.freeze()  # so that no fork copies what it does not change
    running, tasks = {}, iter(tasks)
    while True:
        while len(running) < workers and (task := next(tasks, None)) is not None:
            number, place = fork(task[1])
            running[number] = task[0], place
        if not running:
            return
        number, status = os.wait()
        if number in running:
            key, place = running.pop(number)
            done(key, _answer_of(place), status)


def save(file, told):
    """Write a file, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".tmp")
    part.write_text(json.dumps(told) + "\n")
    os.replace(part, file)
