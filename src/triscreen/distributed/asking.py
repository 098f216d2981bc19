"""Questions to Dask that may never be answered: by a worker or a scheduler that has stopped, for one.

Dask's own calls wait for ever. Here they are made elsewhere, and whoever waits looks at the clock: silence is told, and
`Ctrl-C` and deadlines get through.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time

from triscreen._utils.threads import check_time

_TICK = 0.05  # seconds between two looks at the clock


class NoAnswer(Exception):
    """There was none in time, or Dask could not ask; the text says which."""


def begun(function, *arguments, **named):
    """Return the future of a call, made in a thread of its own: one that is never answered ends with this process."""
    answer = concurrent.futures.Future()

    def call():
        try:
            answer.set_result(function(*arguments, **named))
        except BaseException as err:
            answer.set_exception(err)

    threading.Thread(target=call, daemon=True, name="triscreen asks").start()
    return answer


def on_loop(client, coroutine):
    """Return the future of a coroutine of Dask's, on the loop of a client; one that fails where the loop is over."""
    try:
        return asyncio.run_coroutine_threadsafe(coroutine, client.loop.asyncio_loop)
    except RuntimeError as err:  # its client was closed by somebody else, a moment ago
        coroutine.close()
        answer = concurrent.futures.Future()
        answer.set_exception(err)
        return answer


def outcome(answer, seconds):
    """Return the result of a future; `NoAnswer` where it has none, or not in so many seconds."""
    end = time.monotonic() + seconds
    while True:
        if concurrent.futures.wait([answer], timeout=_TICK).done:
            try:
                return answer.result()
            except (Exception, asyncio.CancelledError) as err:  # of Dask: a connection that went, in many dresses
                raise NoAnswer(" ".join(str(err).split()) or type(err).__name__) from err
        if time.monotonic() > end:
            raise NoAnswer(f"nothing for {seconds:.0f} s")
        check_time()


def ask(seconds, function, *arguments, **named):
    """Return what a call of Dask's returns, or `NoAnswer`, as `outcome` does."""
    return outcome(begun(function, *arguments, **named), seconds)
