"""Loaders fuzzed with guidance by coverage: bytes that reach new code are kept and changed further (atheris).

    python tests/fuzz_loaders.py SECONDS [FOLDER]     as long as it is given; folder: build/fuzz
    python tests/fuzz_loaders.py again FILE           one file once more

The first byte says which loader reads the rest, as a file: points of every kind, comparisons, models and paths, the
first file of a checkpoint. Each must end with a result or with one sentence (`InputError`), within SECONDS_EACH and
BYTES more of memory, and leave nothing behind. Archives have checksums, so that changed bytes hardly ever get past
these: where the first byte is large, they are made right again. It begins with tests/data/fuzz; what a night finds is
in FOLDER/corpus, and what it did is added up in FOLDER/counts.json. Whatever is wrong ends it, with a file that repeats
it.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
TESTS = Path(__file__).parent
SEEDS = TESTS / "data" / "fuzz"
SECONDS_EACH, BYTES, LONGEST = 20, 10**9, 1 << 14
_BETWEEN = 300  # seconds of one process: its memory is looked at by libFuzzer, and its corpus merged by the next


def _points(suffix):
    def read(file):
        from triscreen.datasets import read_points

        return read_points(str(file))

    return suffix, read


def _comparisons(file):
    from triscreen.datasets import read_comparisons

    return read_comparisons(str(file), n_points=30)


def _load(file):
    import triscreen as ts

    return ts.load(file)


def _look(file):
    from triscreen._utils import checkpoint

    folder = file.with_name("folder")
    folder.mkdir()
    file.rename(folder / "checkpoint.tsc")
    return checkpoint.look(folder)


def checked(data):
    """Return a zip with the CRCs of its members right again, as far as it can be read; other bytes as they are."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = archive.infolist()
            out = bytearray(data)
            for member in found:
                if member.compress_type or member.file_size > LONGEST:
                    return data
                begin = (
                    member.header_offset
                    + 30
                    + sum(
                        int.from_bytes(data[member.header_offset + at : member.header_offset + at + 2], "little")
                        for at in (26, 28)
                    )
                )
                crc = zlib.crc32(data[begin : begin + member.file_size]).to_bytes(4, "little")
                out[member.header_offset + 14 : member.header_offset + 18] = crc
                place = data.find(member.filename.encode(), archive.start_dir) - 46
                if place >= archive.start_dir:
                    out[place + 16 : place + 20] = crc
            return bytes(out)
    except Exception:  # no zip
        return data


LOADERS = [
    _points("csv"), _points("tsv"), _points("txt"), _points("svm"), _points("npy"), _points("npz"), _points("parquet"),
    ("csv", _comparisons), ("npy", _comparisons), ("tsc", _load), ("tsc", _look),
]  # fmt: skip


class Wrong(Exception):
    """An answer that is neither a result nor a sentence."""


def attempt(data, place):
    """Read some bytes in a folder; return "read" or "refused", or raise what is wrong."""
    import triscreen as ts

    if not data:
        return "refused"
    suffix, read = LOADERS[data[0] % len(LOADERS)]
    body = checked(data[1:]) if data[0] >= 128 else data[1:]
    file = Path(place) / f"fuzzed.{suffix}"
    file.write_bytes(body)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(file)
        return "read"
    except ts.InputError as err:
        said = str(err)
        if "\n" in said or not said or len(said) > 2000:
            raise Wrong(f"not one sentence: {said[:300]!r}") from err
        return "refused"
    finally:
        left = sorted(str(name.relative_to(place)) for name in Path(place).rglob("*") if name.is_file())
        for name in sorted(Path(place).rglob("*"), reverse=True):
            name.rmdir() if name.is_dir() else name.unlink()
        if left not in ([file.name], ["folder/checkpoint.tsc"]):
            raise Wrong(f"left behind: {left}")


def fuzz(seconds, corpus, found):
    """Fuzz in this process until libFuzzer ends it."""
    import atheris

    with atheris.instrument_imports(include=["triscreen.datasets", "triscreen._utils", "triscreen.persistence"]):
        import triscreen._utils.checkpoint
        import triscreen.datasets.read
        import triscreen.persistence  # noqa: F401
    for name in ("pyarrow.parquet", "scipy.sparse", "sklearn.datasets"):  # what the first file of a kind would wait for
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    place = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)

    def one(data):
        with contextlib.redirect_stderr(io.StringIO()):
            attempt(data, place)

    atheris.Setup(
        [sys.argv[0], f"-max_total_time={seconds}", f"-max_len={LONGEST}", f"-timeout={SECONDS_EACH}",
         f"-rss_limit_mb={(BYTES + 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) >> 20}",
         f"-artifact_prefix={found}/", "-print_final_stats=1", "-verbosity=1", str(corpus), str(SEEDS)],
        one,
    )  # fmt: skip
    atheris.Fuzz()


def night(seconds, folder="build/fuzz"):
    """Fuzz for so long, in processes of some minutes; return the file of what went wrong, or None."""
    folder, end = Path(folder).resolve(), time.time() + seconds
    corpus, wrong, book = folder / "corpus", folder / "wrong", folder / "counts.json"
    for made in (corpus, wrong):
        made.mkdir(parents=True, exist_ok=True)
    told = json.loads(book.read_text()) if book.exists() else {"executions": 0, "seconds": 0.0}
    while (left := end - time.time()) > 5:
        begin, before = time.time(), set(wrong.iterdir())
        words = [sys.executable, __file__, "--part", str(int(min(left, _BETWEEN))), str(corpus), str(wrong)]
        done = subprocess.run(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, errors="replace")
        lines = [line for line in done.stderr.splitlines() if "number_of_executed_units" in line]
        told["executions"] += int(lines[-1].split()[-1]) if lines else 0
        told["seconds"] = round(told["seconds"] + time.time() - begin, 1)
        told["corpus"] = len(list(corpus.iterdir()))
        part = book.with_suffix(".tmp")
        part.write_text(json.dumps(told, indent=1) + "\n")
        os.replace(part, book)
        print(told, flush=True)
        if done.returncode:
            print(f"{done.stderr[-3000:]}\nended with {done.returncode} (below 0: by that signal)")
            return next(iter(set(wrong.iterdir()) - before), folder)
    return None


def main(*words):
    """Fuzz, or repeat; return the exit code."""
    if words and words[0] == "--part":
        return fuzz(int(words[1]), words[2], words[3])
    if words and words[0] == "again":
        with tempfile.TemporaryDirectory() as place:
            print(attempt(Path(words[1]).read_bytes(), place))
        return 0
    file = night(float(words[0]) if words else 3600.0, *words[1:2])
    if file is not None:
        print(f"WRONG: python tests/fuzz_loaders.py again {file}")
    return 0 if file is None else 1


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    sys.exit(main(*sys.argv[1:]))
