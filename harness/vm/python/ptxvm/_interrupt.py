# SPDX-License-Identifier: MIT
"""Ctrl-C during a long call into a library."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def interruptible(call: Callable[[ctypes.c_uint8], T]) -> T:
    """call(stop), which is to end soon after the byte is no longer 0.

    Python handles signals between its own instructions, in the main thread. So this thread waits
    for another one that makes the call, and can stop it."""
    stop = ctypes.c_uint8(0)
    if threading.current_thread() is not threading.main_thread():
        return call(stop)
    results: list[T] = []
    errors: list[BaseException] = []
    # Thread.join would not do: once interrupted, CPython 3.11 holds the thread for ended.
    ended = threading.Event()

    def work() -> None:
        try:
            results.append(call(stop))
        except BaseException as error:  # raised again below
            errors.append(error)
        finally:
            ended.set()

    threading.Thread(target=work, name="ptxvm", daemon=True).start()
    try:
        ended.wait()
    except BaseException:
        stop.value = 1
        while not ended.is_set():  # the library uses the caller's memory until then
            with contextlib.suppress(KeyboardInterrupt):
                ended.wait()
        raise
    if errors:
        raise errors[0]
    return results[0]
