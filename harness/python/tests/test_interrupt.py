# SPDX-License-Identifier: MIT
"""Ctrl-C during a run on the machine: it ends soon, and the next one works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

ENDLESS = '''
import numpy as np, ptxvm
TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 rounds) {
  .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r2, [rounds];
  mov.u32 %r1, 0;
again:
  add.u32 %r1, %r1, 1;
  setp.ne.u32 %p, %r1, %r2;
  @%p bra again;
  st.global.u32 [%rd1], %r1;
  ret;
}"""
kernel = ptxvm.Module.parse(TEXT).kernels["k"]
out = np.zeros(1, np.uint32)
def run(rounds):
    kernel.launch(out, np.uint32(rounds), grid=1, block=1)
def check(rounds):
    assert out[0] == rounds, out
long, short = 0, 5
'''
LONG = """
import numpy as np, flash_ladder
def run(keys):
    global o
    o = None
    q, k, v = np.ones((3, 1, 16, keys, 128), np.float16)
    o = flash_ladder.attention(q, k, v, rung="06")
def check(keys):
    assert o is None if keys == 0 else np.all(o == 1)
long, short = 32768, 128
"""
REST = """
import sys, time
print("begins", flush=True)
try:
    run(long)
except KeyboardInterrupt:
    check(0)
    run(short)
    check(short)
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("program", [ENDLESS, LONG], ids=["launch", "attention"])
def test_ctrl_c_ends_a_run(program: str, build: Path, repository: Path) -> None:
    environment = {**os.environ, "FA_BUILD_DIR": str(build), "CUDA_VISIBLE_DEVICES": ""}
    packages = ("harness/python", "harness/vm/python")
    environment["PYTHONPATH"] = ":".join(str(repository / each) for each in packages)
    process = subprocess.Popen(
        [sys.executable, "-c", program + REST],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        # Of a test that runs in the background the signal may be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None and process.stdout.readline() == "begins\n"
    time.sleep(2)
    assert process.poll() is None, process.stderr
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "interrupted\n"), err
    assert time.monotonic() - start < 20


def test_the_call_has_ended_when_it_is_interrupted() -> None:
    from ptxvm._interrupt import interruptible

    ended = []

    def slow(stop: Any) -> None:
        while not stop.value:
            time.sleep(0.01)
        time.sleep(0.5)  # it takes a while until the machine looks
        ended.append(True)

    here = threading.get_ident()
    again = [
        threading.Timer(each, signal.pthread_kill, [here, signal.SIGINT]) for each in (0.2, 0.4)
    ]
    for each in again:
        each.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            interruptible(slow)
        assert ended
    finally:
        for each in again:
            each.join()
        signal.signal(signal.SIGINT, before)


def test_errors_come_from_where_they_were_raised() -> None:
    from ptxvm._interrupt import interruptible

    def fail(stop: object) -> None:
        raise ValueError("told")

    with pytest.raises(ValueError, match="told"):
        interruptible(fail)
    assert interruptible(lambda stop: stop.value) == 0
