"""Ctrl-C and SIGTERM from the first line of the command on: one line, the exit code of shells, no traceback."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import triscreen

spec = importlib.util.spec_from_file_location("sweep_signals", Path(__file__).with_name("sweep_signals.py"))
sweep = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sweep)


@pytest.mark.parametrize(("n", "number"), [(1, signal.SIGINT), (40, signal.SIGTERM), (300, signal.SIGINT),
                                           (900, signal.SIGTERM)])  # fmt: skip
def test_a_signal_amid_imports(tmp_path, n, number):
    code, err = sweep.at_import(n, number, tmp_path)
    assert (code, err) == (128 + number, "triscreen: interrupted\n")
    assert not list(tmp_path.iterdir())


def test_nothing_slow_is_imported_before_there_is_a_handler():
    code = "import sys, triscreen.cli; print([m for m in ('numpy', 'typer') if m in sys.modules])"
    where = {**os.environ, "PYTHONPATH": str(Path(triscreen.__file__).parents[1])}
    told = {"capture_output": True, "text": True, "check": True, "env": where}
    out = subprocess.run([sys.executable, "-S", "-c", code], **told).stdout
    assert "numpy" not in out
    assert "typer" not in out


def test_sigterm_keeps_the_work(tmp_path):
    """As Ctrl-C does (test_cli): the checkpoint is there, a line says so."""
    code = (
        "import os, signal, sys\n"
        "from triscreen._utils.checkpoint import Checkpoint\n"
        "append = Checkpoint.append\n"
        "def appended(self, *arguments, **more):\n"
        "    append(self, *arguments, **more)\n"
        "    if len(self) == 3: os.kill(os.getpid(), signal.SIGTERM)\n"
        "Checkpoint.append = appended\n"
        "from triscreen.cli import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code, *sweep.command(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 143, done.stderr
    assert sweep.wrong(done.returncode, done.stderr, signal.SIGTERM, tmp_path) is None
    assert len(list(tmp_path.rglob("[0-9]*.tsc"))) == 3


def test_signals_that_are_ignored_stay_so():
    code = (
        "import signal; from triscreen.cli import signals\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN); signals.listen()\n"
        "print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN, signal.getsignal(signal.SIGTERM) is signals._stop)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["True", "True"]


def test_ctrl_c_amid_code_that_forgets_exceptions_comes_a_moment_later():
    """While numba compiles, llvmlite calls back from C: a KeyboardInterrupt there would be shown and lost."""
    code = (
        "import os, signal, time\n"
        "from triscreen.cli import signals\n"
        "signals.listen()\n"
        "signals.enter('running')\n"
        "exec(compile('os.kill(os.getpid(), signal.SIGINT)', '/somewhere/llvmlite/callback.py', 'exec'))\n"
        "print('through', flush=True)\n"
        "try:\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', signals.code())\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (out.stdout, out.stderr) == ("through\ninterrupted 130\n", "")


def test_a_signal_when_all_is_written_changes_nothing():
    """Python takes its handlers away before it ends: what is ignored stays so."""
    code = (
        "import atexit, os, signal, sys\n"
        "from triscreen.cli import main\n"
        "class Late:\n"
        "    def __del__(self, kill=os.kill, me=os.getpid()):\n"
        "        kill(me, 2), kill(me, 15)\n"
        "sys.late = Late()\n"
        "sys.argv = ['triscreen', 'info', '--json']\n"
        "main()\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (out.returncode, out.stderr) == (0, ""), out
    assert out.stdout.startswith("{")
