# SPDX-License-Identifier: MIT
"""The package ptxvm: any kernel's PTX, from Python."""

from __future__ import annotations

import copy
import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import ptxvm
import pytest

SCALE = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 y, .param .f32 a, .param .u32 n) {
  .reg .pred %p; .reg .b32 %r<5>; .reg .f32 %f<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [y];
  ld.param.f32 %f1, [a];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r2, %r2, %r3, %r4;
  setp.ge.u32 %p, %r2, %r1;
  @%p ret;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f2, [%rd3];
  mul.f32 %f3, %f2, %f1;
  st.global.f32 [%rd3], %f3;
  ret;
}
"""

# Each thread stores to shared memory; then, without a barrier, reads what another warp stored. The
# kernel is that of harness/vm/tests/tool_words_test.py: the machine's tests stand alone.
RACE = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry race(.param .u64 out) {
  .shared .align 4 .b8 tile[256];
  .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  shl.b32 %r3, %r1, 2;
  add.s32 %r4, %r2, %r3;
  st.shared.u32 [%r4], %r1;
  xor.b32 %r5, %r3, 128;
  add.s32 %r6, %r2, %r5;
  ld.shared.u32 %r7, [%r6];
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r7;
  ret;
}
"""


COPY = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to) {
  .reg .b32 %r<3>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  st.global.u32 [%rd5], %r2;
  ret;
}
"""


@pytest.fixture
def launch_copy() -> Any:
    """Copies 32 words from an array to another."""
    kernel = ptxvm.Module.parse(COPY).kernel()
    return lambda source, target: kernel.launch(source, target, grid=1, block=32)


@pytest.fixture
def scale() -> ptxvm.Kernel:
    return ptxvm.Module.parse(SCALE, "scale.ptx").kernel("scale")


def numbers(count: int = 64) -> Any:
    return np.arange(count, dtype=np.float32)


def test_module_and_parameters(scale: ptxvm.Kernel) -> None:
    assert (scale.module.target, scale.module.version) == ("sm_80", 8.0)
    assert [(each.name, each.type, each.offset) for each in scale.parameters] == [
        ("y", "u64", 0),
        ("a", "f32", 8),
        ("n", "u32", 12),
    ]
    assert repr(scale) == "<Kernel scale(y: u64, a: f32, n: u32)>"
    with pytest.raises(KeyError, match=r"no kernel 'other' in scale\.ptx; there are: scale"):
        scale.module.kernel("other")


def test_launch_changes_the_array_and_counts(scale: ptxvm.Kernel) -> None:
    y = numbers()
    result = scale.launch(y, 2, 60, grid=2, block=32)
    expected = numbers()
    expected[:60] *= 2
    assert (y == expected).all()
    assert result.ok and result.counts["global_load_sectors"] == 8
    assert result.counts["load_global"] == 2 and result.counts["tensor"] == 0
    assert result.steps == result.counts["instructions"]
    load = next(line for line in result.by_line() if line.opcode == "ld.global.f32")
    assert load.counts["global_load_sectors"] == 8
    assert SCALE.splitlines()[load.line - 1].strip().startswith("ld.global.f32")
    assert "global_load_sectors" in str(result)


def test_a_view_is_bounded(scale: ptxvm.Kernel) -> None:
    """The neighbours of a view are neither read nor written."""
    y = numbers()
    scale.launch(y[32:48], 0.0, 16, grid=1, block=32)
    assert (y[32:48] == 0).all() and (y[48:] == numbers()[48:]).all() and y[31] == 31
    for part in (y[:48], y[16:48]):
        before, count = y.copy(), len(part) + 1
        message = rf"global read of 4 bytes .* at \+{part.nbytes} of buffer 'y' \({part.nbytes} by"
        with pytest.raises(ptxvm.KernelFault, match=message):
            scale.launch(part, 2.0, count, grid=2, block=32)
        assert (y == before).all()


def test_views_that_overlap_are_one_buffer(launch_copy: Any) -> None:
    y = numbers(96)
    launch_copy(y[32:64], y[48:80])  # each thread stores one place after its own load
    assert (y[48:80] == numbers(96)[32:64]).all() and (y[80:] == numbers(96)[80:]).all()
    y = numbers(96)
    launch_copy(y[:32], y[32:64])
    assert (y[32:64] == y[:32]).all() and (y[64:] == numbers(96)[64:]).all()
    with pytest.raises(ptxvm.KernelFault, match=r"at \+124 of buffer 'to' \(124 bytes\)"):
        launch_copy(y[:32], y[32:63])
    with pytest.raises(ptxvm.KernelFault, match=r"at \+96 of buffer 'from' \(96 bytes\)"):
        launch_copy(y[:24], y[64:])


def test_a_view_is_aligned_as_in_its_array(launch_copy: Any) -> None:
    y = numbers(64).view(np.uint8)
    launch_copy(y[:128], y[128:])
    with pytest.raises(ptxvm.KernelFault, match="misaligned"):
        launch_copy(y[:128], y[126:254])


@pytest.mark.parametrize("move", [pickle.dumps, copy.copy, copy.deepcopy])
def test_kernels_and_modules_stay_where_they_are(scale: ptxvm.Kernel, move: Any) -> None:
    for value, name in ((scale, "Kernel"), (scale.module, "Module"), ([scale], "Kernel")):
        if move is copy.copy and isinstance(value, list):
            continue  # the copied list holds the kernel itself
        with pytest.raises(TypeError, match=f"a {name} cannot be pickled or copied; pass its PTX"):
            move(value)


def test_an_array_that_is_read_only_is_not_written(scale: ptxvm.Kernel) -> None:
    y = numbers()
    y.flags.writeable = False
    scale.launch(y, 1.0, 64, grid=2, block=32)  # the same values
    with pytest.raises(ptxvm.LaunchError, match="changed 'y', which is read-only"):
        scale.launch(y, 2.0, 64, grid=2, block=32)
    assert (y == numbers()).all()


def test_numpy_scalars_bytes_and_negative_integers(scale: ptxvm.Kernel) -> None:
    y = numbers()
    scale.launch(y, np.float32(3), np.uint32(1).tobytes(), grid=1, block=32)
    assert y[:3].tolist() == [0, 1, 2]
    scale.launch(y, np.float32(3), -1, grid=1, block=32)  # 4294967295 to the kernel
    assert y[:3].tolist() == [0, 3, 6]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((2.0, 1), {}, r"2 arguments for the parameters: y \(u64\), a \(f32\), n \(u32\)"),
        ((numbers()[::2], 2.0, 1), {}, r"y is .u64, got an array with strides \(8,\)"),
        ((numbers(), numbers(), 1), {}, "a is .f32, got an array; a pointer needs 8 bytes"),
        ((numbers(), 2.0, 1.5), {}, "n is .u32, got 1.5; an integer is needed"),
        ((numbers(), 2.0, 2**32), {}, "n is .u32, got 4294967296; out of range"),
        ((numbers(), np.float64(2), 1), {}, "a is .f32, got a float64; it has 4 bytes"),
        ((numbers(), "x", 1), {}, "a is .f32, got a str; allowed: a number, a numpy array"),
        (
            (numbers().astype(">f4"), 2.0, 1),
            {},
            "y is .u64, got an array of >f4; allowed: the byte",
        ),
        ((numbers().astype(object), 2.0, 1), {}, "y is .u64, got an array of object; allowed: num"),
        ((np.ma.masked_array(numbers(), True), 2.0, 1), {}, "y is .u64, got an array with a mask"),
        ((ptxvm.Struct(numbers().astype(object)), 2.0, 1), {}, "y is .u64, got an array of object"),
        ((numbers(), 2.0, 1), {"grid": 0}, "grid 0; allowed: 1 to 3 extents"),
        ((numbers(), 2.0, 1), {"grid": 1.5}, "grid 1.5; allowed: 1 to 3 extents"),
        ((numbers(), 2.0, 1), {"grid": "1"}, "grid '1'; allowed: 1 to 3 extents"),
        ((numbers(), 2.0, 1), {"grid": 2**32}, "grid 4294967296; allowed: 1 to 3 extents"),
        ((numbers(), 2.0, 1), {"shared": 1.5}, "shared 1.5; allowed: 0 to"),
        ((numbers(), 2.0, 1), {"trace": "x"}, "trace 'x'; allowed: 0 to"),
        ((numbers(), 2.0, 1), {"block": 2048}, "2048, 1, 1. threads; from 1 to 1024 are allowed"),
        ((numbers(), 2.0, 1), {"shared": -1}, "shared -1; allowed: 0 to"),
        ((numbers(), 2.0, 1), {"trace": [-1]}, "trace -1; allowed: 0 to"),
    ],
)
def test_launches_that_are_refused(
    scale: ptxvm.Kernel, arguments: Any, options: Any, message: str
) -> None:
    with pytest.raises(ptxvm.LaunchError, match=message):
        scale.launch(*arguments, **({"grid": 1, "block": 32} | options))


def test_text_that_is_not_ptx() -> None:
    with pytest.raises(ptxvm.ParseError) as caught:
        ptxvm.Module.parse(SCALE.replace("mul.f32", "mul.f23"), "wrong.ptx")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.file, diagnostic.line, diagnostic.column) == ("wrong.ptx", 19, 3)
    assert diagnostic.message == "unknown instruction 'mul.f23'"
    assert "^~~~~~~" in str(caught.value)


def test_extents_of_numpy(scale: ptxvm.Kernel) -> None:
    y = numbers()
    scale.launch(y, 2.0, 64, grid=np.array([2, 1]), block=np.int64(32))
    assert (y == 2 * numbers()).all()


def test_what_holds_no_ptx(tmp_path: Path) -> None:
    """Opening a pipe would wait for ever, and /dev/zero has no end."""
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", tmp_path / "pipe", tmp_path):
        with pytest.raises(ptxvm.ParseError, match=f"^{path}: not a regular file$"):
            ptxvm.Module.load(path)
    with open(tmp_path / "large", "wb") as file:
        file.truncate(1 << 40)  # it takes no room
    with pytest.raises(ptxvm.ParseError, match=r"large.*33554432"):
        ptxvm.Module.load(tmp_path / "large")
    with pytest.raises(FileNotFoundError):
        ptxvm.Module.load(tmp_path / "none")
    with pytest.raises(TypeError, match="text is a int; allowed: str or bytes"):
        ptxvm.Module.parse(5)  # type: ignore[arg-type]
    with pytest.raises(ptxvm.ParseError, match="expected an instruction"):
        ptxvm.Module.parse(SCALE.replace("mul.f32", "\ud800"))


def test_a_fault_names_the_buffer_and_leaves_the_array(scale: ptxvm.Kernel) -> None:
    y = numbers()
    with pytest.raises(ptxvm.KernelFault, match=r"at \+256 of buffer 'y' \(256 bytes\)") as caught:
        scale.launch(y, 2.0, 65, grid=3, block=32)
    fault = caught.value
    assert (fault.block, fault.warp, fault.lane) == ((2, 0, 0), 0, 0)
    assert fault.diagnostics[0].text.strip() == "ld.global.f32 %f2, [%rd3];"
    assert (y == numbers()).all()


def test_races_are_findings_and_a_barrier_ends_them() -> None:
    def launch(text: str, **options: Any) -> ptxvm.Result:
        out = np.zeros(64, np.uint32)
        return ptxvm.Module.parse(text).kernel("race").launch(out, grid=1, block=64, **options)

    result = launch(RACE)
    assert {finding.checker for finding in result.findings} >= {"race"}
    assert not result.ok and "ld.shared.u32" in str(result.findings[0])
    assert launch(RACE, checkers=False).ok
    assert launch(RACE.replace("xor.b32", "bar.sync 0;\n  xor.b32")).ok


def test_trace(scale: ptxvm.Kernel) -> None:
    result = scale.launch(numbers(), 2.0, 64, grid=2, block=32, trace=[1])
    events = json.loads(result.trace)["traceEvents"]
    assert any(
        "block 1" in json.dumps(event) or "(1, 0, 0)" in json.dumps(event) for event in events
    )
    assert scale.launch(numbers(), 2.0, 64, grid=2, block=32).trace == ""


def test_a_warp_that_never_ends() -> None:
    loop = ".version 8.0\n.target sm_80\n.address_size 64\n.entry f() {\nL: bra L;\n}\n"
    with pytest.raises(ptxvm.KernelFault) as caught:
        ptxvm.Module.parse(loop).kernel("f").launch(grid=1, block=32, max_warp_steps=1000)
    assert caught.value.kind == "step limit" and caught.value.diagnostics[0].line == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"box": None}, "box None; allowed: extents from 1 to 256"),
        ({"box": (8, 1.5)}, r"box \(8, 1.5\); allowed: extents from 1 to 256"),
        ({"box": (8,)}, "has 1 extents, the array 2"),
        ({"box": (0, 8)}, r"box \(0, 8\); allowed: extents from 1 to 256"),
        ({"box": (8, -1)}, r"box \(8, -1\); allowed: extents from 1 to 256"),
        ({"box": (8, 8), "swizzle": 48}, "swizzle 48; allowed: 0, 32, 64, 128"),
        ({"box": (8, 8), "packed": True}, "a packed tensor map of float16; allowed: uint8"),
        ({"box": (8, 8), "gaps": True}, "a tensor map with gaps; allowed: where it is packed"),
    ],
)
def test_tensor_maps_that_are_none(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ptxvm.TensorMap(np.zeros((8, 8), np.float16), **options)
    for array in (np.zeros((8, 8), ">f2"), np.zeros((8, 8), object), [[1]]):
        with pytest.raises(ValueError, match=r"a tensor map of .*; allowed: "):
            ptxvm.TensorMap(array, (8, 8))
    with pytest.raises(ValueError, match="strides"):
        ptxvm.TensorMap(np.zeros((8, 8), np.float16).T, (8, 8))
