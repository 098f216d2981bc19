"""Nothing of the user's is lost: outputs are no inputs, and only a run's own files are removed."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest

import triscreen as ts
from commands import COMMANDS, FUNCTIONS, READ, TEXTS, WRITTEN, contents, invoke, make_files, refusal
from triscreen._utils import archive as files
from triscreen.cli import outputs

SMALL = ("--label", "class", "--drop", "name")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    return folder, make_files(folder)


@pytest.fixture
def given(made, tmp_path):
    folder, names = made
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return {name: tmp_path / file.name for name, file in names.items()}


def parameters(name, kinds):
    return [parameter for parameter in COMMANDS[name].params if parameter.name in kinds]


def command_line(name, given, **options):
    """Return a command with all of its arguments, and these options."""
    arguments = [p.name for p in COMMANDS[name].params if p.param_type_name == "argument"]
    words = [name, *(options.pop(argument, None) or given.get(argument, "exact") for argument in arguments)]
    for parameter in COMMANDS[name].params:
        if parameter.name in options:
            words += [parameter.opts[0], options[parameter.name]]
        elif parameter.required and parameter.param_type_name == "option":
            words += [parameter.opts[0], Path(given["data"]).parent / "out"]
    return words


CLASHES = [
    (name, output.name, source.name)
    for name in COMMANDS
    for output in parameters(name, WRITTEN)
    for source in parameters(name, READ)
]
PAIRS = [
    (name, first.name, second.name)
    for name in COMMANDS
    for first in parameters(name, WRITTEN)
    for second in parameters(name, WRITTEN)
    if first.name < second.name
]


def test_every_parameter_that_could_be_a_file_is_known():
    for name, function in FUNCTIONS.items():
        for parameter, kind in get_type_hints(function).items():
            if {kind, *get_args(kind)} & {str, Path, list[str]}:
                assert parameter in READ + WRITTEN + TEXTS, f"{name}: what is {parameter}?"
    assert FUNCTIONS.keys() == COMMANDS.keys()
    assert {name for name, *_ in CLASHES} == {"path", "fit", "predict", "transform", "export", "report", "bench"}


def spellings(file):
    """Yield other names of a file."""
    yield file
    yield os.path.relpath(file)
    yield file.parent / "x" / ".." / file.name
    (file.parent / "x").mkdir()
    (file.parent / "symbolic").symlink_to(file)
    yield file.parent / "symbolic"
    os.link(file, file.parent / "hard")
    yield file.parent / "hard"


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("name", "output", "source"), CLASHES)
def test_an_output_that_is_an_input_is_refused(given, tmp_path, name, output, source):
    for other in spellings(given[source]):
        before = contents(tmp_path)
        options = {"output": tmp_path / "new", source: given[source], output: other}
        sentence = refusal(*command_line(name, given, **options))
        assert f"{output}=" in sentence
        assert f"{source}={str(given[source])!r}" in sentence or "it has no effect with --comparisons" in sentence
        assert contents(tmp_path) == before


@pytest.mark.parametrize(("name", "first", "second"), PAIRS)
def test_outputs_differ(given, tmp_path, name, first, second):
    before = contents(tmp_path)
    options = {"output": tmp_path / "new", first: tmp_path / "same", second: tmp_path / "x" / ".." / "same"}
    sentence = refusal(*command_line(name, given, **options))
    assert f"{first}=" in sentence
    assert f"{second}=" in sentence
    assert contents(tmp_path) == before


def test_pairs_of_files_and_standard_input_are_inputs_too(given, tmp_path):
    for name in ("X", "y"):
        np.save(tmp_path / f"{name}.npy", np.arange(4.0)[:, None] if name == "X" else np.arange(4) % 2)
    for name in ("X", "y"):
        words = refusal("path", f"{tmp_path}/X.npy,{tmp_path}/y.npy", "-o", tmp_path / f"{name}.npy")
        assert "is what is read" in words
    with open(given["data"], "rb") as stream:
        assert outputs._same(given["data"], stream.fileno())
    assert "data='iris'" not in refusal("fit", "iris", "-o", tmp_path / "no" / "m")
    (Path(tmp_path) / "out.checkpoint").write_text("1,2,a\n3,4,b\n5,6,a\n")
    assert "checkpoint=" in refusal("path", tmp_path / "out.checkpoint", "-o", tmp_path / "out")


@pytest.mark.parametrize("name", [name for name in COMMANDS if parameters(name, ("checkpoint",))])
def test_a_checkpoint_has_a_folder_of_its_own(given, tmp_path, name):
    before = contents(tmp_path)
    for checkpoint, output in ((tmp_path, tmp_path / "x"), (tmp_path / "c", tmp_path / "c" / "out")):
        words = command_line(name, given, output=output, checkpoint=checkpoint)
        assert "lie one in the other" in refusal(*words) or "does not exist" in refusal(*words)
    assert "is a file" in refusal(*command_line(name, given, output=tmp_path / "x", checkpoint=given["model"]))
    assert contents(tmp_path) == before


MODES = {
    "path": ("path", "--n-lambdas", "3", "--tol", "1e-3", "-k", "2"),
    "cross-validation": ("fit", "--cv", "2", "-k", "2"),
    "lam": ("fit", "--lam", "1", "-k", "2"),
    "lam-ratio": ("fit", "--lam-ratio", "0.1", "-k", "2"),
}


@pytest.mark.parametrize("mode", MODES)
def test_only_its_own_files_are_removed(given, tmp_path, mode):
    """What lies in OUTPUT.checkpoint and is not of this run stays, and a run that keeps none says nothing of it."""
    folder = tmp_path / "out.checkpoint"
    (folder / "mine").mkdir(parents=True)
    (folder / "mine" / "000000.tsc").write_text("not ours")
    command, *more = MODES[mode]
    words = (command, given["data"], "-o", tmp_path / "out", *SMALL, *more)
    if mode == "path":
        assert refusal(*words).endswith("the folder must be new, empty or that of this run")
    else:
        (folder / "notes.txt").write_text("notes")
        done = invoke(*words)
        assert done.code == 0, done
        assert (folder / "notes.txt").read_text() == "notes"
        assert mode == "cross-validation" or "checkpoint" not in done.err
    assert (folder / "mine" / "000000.tsc").read_text() == "not ours"


def interrupt_after(monkeypatch, lambdas):
    """Let Ctrl-C come after so many entries of a checkpoint."""
    from triscreen._utils.checkpoint import Checkpoint

    append = Checkpoint.append

    def appended(self, *arguments, **more):
        if len(list(Path(self.folder).glob("0*.tsc"))) >= lambdas:
            raise KeyboardInterrupt
        append(self, *arguments, **more)

    monkeypatch.setattr(Checkpoint, "append", appended)


@pytest.mark.parametrize("mode", ["path", "cross-validation"])
def test_ctrl_c_before_the_first_entry_leaves_what_is_not_its_own(given, tmp_path, monkeypatch, mode):
    command, *more = MODES[mode]
    words = (command, given["data"], "-o", tmp_path / "out", *SMALL, *more)
    before = contents(tmp_path)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 0)
        done = invoke(*words)
        assert (done.code, done.err.splitlines()[-1]) == (130, "triscreen: interrupted")
        assert contents(tmp_path) == before
        (tmp_path / "out.checkpoint").mkdir()
        if mode != "path":  # the folder of a path may hold nothing else
            (tmp_path / "out.checkpoint" / "notes.txt").write_text("notes")
            before = contents(tmp_path)
        assert invoke(*words).code == 130
        assert contents(tmp_path) == before


def test_other_commands_leave_an_unfinished_run_alone(given, tmp_path, monkeypatch):
    """Hours of a path are not lost by a fit of one lambda to the same output."""
    path = ("path", given["data"], "-o", tmp_path / "out", *SMALL, *MODES["path"][1:])
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        done = invoke(*path)
    assert "what is done is kept in" in done.err
    kept = contents(tmp_path / "out.checkpoint")
    assert len([name for name in kept if name.startswith("0")]) == 2
    for mode in ("lam", "lam-ratio"):
        done = invoke("fit", given["data"], "-o", tmp_path / "out", *SMALL, *MODES[mode][1:], "--quiet")
        assert (done.code, done.err) == (0, "")
    compared = ("--comparisons", given["comparisons"], "--drop", "class", "--drop", "name", "--quiet")
    done = invoke("fit", given["data"], "-o", tmp_path / "out", *compared)
    assert done.err == ""
    assert contents(tmp_path / "out.checkpoint") == kept
    done = invoke(*path)
    assert done.code == 0, done
    assert "going on from" in done.err
    assert not (tmp_path / "out.checkpoint").exists()


def test_a_checkpoint_of_other_folds_is_refused_with_the_hint(given, tmp_path, monkeypatch):
    words = ("fit", given["data"], "-o", tmp_path / "out", *SMALL, "--cv", "2")
    with monkeypatch.context() as patch:
        interrupt_after(patch, 2)
        assert invoke(*words, "-k", "2").code == 130
    kept = contents(tmp_path)
    sentence = refusal(*words, "-k", "3")
    assert "fold 0 of cv" in sentence
    assert sentence.endswith("or remove this one to begin anew")
    assert contents(tmp_path) == kept


WRITING = {
    "demo": ("demo", "--quiet"),
    "path": ("path", "{data}", *SMALL, *MODES["path"][1:], "--quiet"),
    "path with a report": ("path", "{data}", *SMALL, *MODES["path"][1:], "--quiet", "--report", "{folder}/r.html"),
    "fit by folds": ("fit", "{data}", *SMALL, *MODES["cross-validation"][1:], "--quiet"),
    "fit": ("fit", "{data}", *SMALL, *MODES["lam"][1:], "--quiet"),
    "transform": ("transform", "{model}", "{data}"),
    "transform to npy": ("transform", "{model}", "{data}"),
    "predict": ("predict", "{voting}", "{data}"),
    "export": ("export", "{model}", "--to", "npz", "--quiet"),
    "export a path": ("export", "{file}", "--lam", "1", "--quiet"),
    "report": ("report", "{file}"),
}


def test_every_command_that_writes_is_among_those_that_meet_a_full_disk():
    writing = {name for name in COMMANDS if parameters(name, WRITTEN)}
    assert {words[0] for words in WRITING.values()} == writing - {"bench"}  # which only starts another program


@pytest.mark.thinned(3)
@pytest.mark.parametrize("where", ["open", "fsync", "replace"])
@pytest.mark.parametrize("what", [what for what in WRITING if what != "demo"])
def test_a_full_disk_or_one_that_is_read_only_costs_nothing(given, tmp_path, monkeypatch, what, where):
    """One sentence, exit code 1; the old output is still there, no temporary file is, and the work can go on."""
    number = {"open": errno.EROFS}.get(where, errno.ENOSPC)
    output = tmp_path / ("out.npy" if what.endswith("npy") else "out")
    output.write_text("old")
    words = [word.format(folder=tmp_path, **given) for word in WRITING[what]]
    before = contents(tmp_path)
    real = {"open": open, "fsync": os.fsync, "replace": os.replace}[where]

    def fails(*arguments):
        """The last file of the command is the one that fails; checkpoints are written before."""
        if where == "open" and (arguments[1:] != ("xb",) or "checkpoint" in str(arguments[0])):
            return real(*arguments)
        if where == "replace" and "checkpoint" in str(arguments[1]):
            return real(*arguments)
        if where == "fsync" and "checkpoint" in os.readlink(f"/proc/self/fd/{arguments[0]}"):
            return real(*arguments)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(*((files, "open", fails) if where == "open" else (os, where, fails)), raising=False)
        sentence = refusal(*words, "-o", output, code=1)
    assert os.strerror(number) in sentence
    assert str(output) in sentence
    after = contents(tmp_path)
    if what in ("path", "path with a report", "fit by folds"):
        assert "the same command goes on from there" in sentence
        assert not [name for name in after if name.endswith(".tmp")]
        after = {name: data for name, data in after.items() if "out.checkpoint" not in name}
        assert invoke(*words, "-o", output).code == 0
        assert not (tmp_path / "out.checkpoint").exists()
    assert after == before


def test_a_checkpoint_on_a_full_disk_is_one_sentence(given, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    words = ("path", given["data"], "-o", tmp_path / "out", *SMALL, *MODES["path"][1:], "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert "No space left" in refusal(*words, code=1)
    assert not [name for name in contents(tmp_path) if name.endswith(".tmp")]
    assert invoke(*words).code == 0
    assert len(ts.load(tmp_path / "out")) == 3
