# SPDX-License-Identifier: MIT
"""The package ptxvm: variables, structs, names, what is left out, hints, and nvcc."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import ptxvm
import ptxvm.triton
import pytest
from ptxvm._compile import find_nvcc
from test_ptxvm import RACE

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
COUNT = (
    HEAD
    + """
.global .align 4 .u32 counter = 5;
.const .align 4 .f32 table[2] = {0f3F800000, 0f40000000};
.visible .entry _Z5countPf(.param .u64 _Z5countPf_param_0) {
  .reg .b32 %r<4>; .reg .f32 %f<2>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [_Z5countPf_param_0];
  mov.u64 %rd2, counter;
  atom.global.add.u32 %r1, [%rd2], 1;
  mov.u64 %rd3, table;
  ld.const.f32 %f1, [%rd3+4];
  st.global.f32 [%rd1], %f1;
  ret;
}
"""
)
# out[0] = pair.pointer[1] + pair.number. The kernel is that of harness/vm/tests/tool_words_test.py:
# the machine's tests stand alone.
PAIR = (
    HEAD
    + """
.visible .entry pair(.param .u64 out, .param .align 8 .b8 value[16]) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [value];
  ld.param.u32 %r1, [value+8];
  ld.global.u32 %r2, [%rd2+4];
  add.u32 %r1, %r1, %r2;
  st.global.u32 [%rd1], %r1;
  ret;
}
"""
)
# Copies a box out of a tensor map: struct { int column; struct { CUtensorMap map; int* out; }; }.
IN_STRUCT = (
    HEAD.replace("sm_80", "sm_90")
    + """
.visible .entry box(.param .align ALIGN .b8 s[BYTES]) {
  .shared .align 128 .b8 tile[64];
  .shared .align 8 .b64 bar;
  .reg .pred %p, %q; .reg .b32 %r<9>; .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [s+ALIGN+128];
  mov.b64 %rd2, s;
  cvta.param.u64 %rd2, %rd2;
  add.s64 %rd2, %rd2, ALIGN;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mov.u32 %r3, bar;
  setp.ne.u32 %p, %r1, 0;
  @%p bra WAIT;
  mbarrier.init.shared::cta.b64 [%r3], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [%r3], 64;
  ld.param.u32 %r4, [s];
  mov.u32 %r5, 2;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
      [%r2], [%rd2, {%r4, %r5}], [%r3];
WAIT:
  bar.sync 0;
POLL:
  mbarrier.try_wait.parity.shared::cta.b64 %q, [%r3], 0;
  @!%q bra POLL;
  shl.b32 %r6, %r1, 2;
  add.s32 %r7, %r2, %r6;
  ld.shared.u32 %r8, [%r7];
  mul.wide.u32 %rd4, %r1, 4;
  add.s64 %rd5, %rd1, %rd4;
  st.global.u32 [%rd5], %r8;
  ret;
}
"""
)
# Each lane loads a word, 128 bytes from its neighbour's.
STRIDED = (
    HEAD
    + """
.visible .entry strided(.param .u64 in) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [in];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 128;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  ret;
}
"""
)


def test_variables_keep_their_values() -> None:
    module = ptxvm.Module.parse(COUNT)
    counter, table = module.variables["counter"], module.variables["table"]
    assert (counter.space, table.space) == ("global", "const")
    assert counter.get(np.uint32)[0] == 5 and table.get(np.float32).tolist() == [1, 2]
    out = np.zeros(1, np.float32)
    for expected in (6, 7):
        module.kernel().launch(out, grid=1, block=1)
        assert counter.get(np.uint32)[0] == expected and out[0] == 2
    table.set(np.array([3, 4], np.float32))
    counter.get(np.uint32)[:] = 100
    module.kernel().launch(out, grid=1, block=1)
    assert counter.get(np.uint32)[0] == 101 and out[0] == 4
    with pytest.raises(ValueError, match="table has 8 bytes, got 4 of float32"):
        table.set(np.float32(1))


def test_kernels_by_part_of_their_name() -> None:
    module = ptxvm.Module.parse(COUNT + PAIR[len(HEAD) :])
    for name in ("count", "_Z5countPf", "count(float*)", "ount"):
        assert module.kernel(name).readable == "count(float*)"
    with pytest.raises(KeyError, match="several ''"):
        module.kernel()
    with pytest.raises(KeyError, match="no kernel 'nothing'"):
        module.kernel("nothing")


def test_a_struct_with_a_pointer() -> None:
    kernel = ptxvm.Module.parse(PAIR).kernel()
    out, x = np.zeros(1, np.uint32), np.arange(7, 10, dtype=np.uint32)
    kernel.launch(out, ptxvm.Struct(x, np.int32(100)), grid=1, block=1)
    assert out[0] == 108
    kernel.launch(out, ptxvm.Struct(x[1:], np.int8(1)), grid=1, block=1)
    assert out[0] == 10
    with pytest.raises(ptxvm.LaunchError, match="got a struct of 8 bytes; it has 16 bytes"):
        kernel.launch(out, ptxvm.Struct(x), grid=1, block=1)
    with pytest.raises(ValueError, match="a struct member of type int"):
        ptxvm.Struct(x, 1)


@pytest.mark.parametrize(("align", "size"), [(64, 256), (128, 384)])  # before CUDA 13, and since
def test_a_struct_with_a_tensor_map(align: int, size: int) -> None:
    text = IN_STRUCT.replace("ALIGN", str(align)).replace("BYTES", str(size))
    kernel = ptxvm.Module.parse(text).kernel()
    x, out = np.arange(96, dtype=np.int32).reshape(8, 12), np.zeros((4, 4), np.int32)
    inner = ptxvm.Struct(ptxvm.TensorMap(x, (4, 4)), out)
    kernel.launch(ptxvm.Struct(np.int32(4), inner), grid=1, block=16)
    assert (out == x[2:6, 4:8]).all()
    with pytest.raises(ptxvm.LaunchError, match=f"a struct of {size - align} bytes; it has {size}"):
        kernel.launch(inner, grid=1, block=16)


def test_findings_that_are_left_out() -> None:
    def launch(text: str, **options: Any) -> ptxvm.Result:
        kernel = ptxvm.Module.parse(text).kernel()
        return kernel.launch(np.zeros(64, np.uint32), grid=1, block=64, **options)

    found = launch(RACE)
    assert found.errors and {each.severity for each in found.findings} == {"error"}
    ignored = launch(RACE, ignore=["race", "uninitialised"])
    assert ignored.ok and ignored.suppressed == len(found.findings)
    load = "ld.shared.u32 %r7, [%r6];"
    commented = RACE.replace(load, load + " // ptxvm: ignore race uninitialised")
    assert launch(commented).ok and not launch(commented, comments=False).ok
    with pytest.raises(ptxvm.LaunchError, match="'rice' is not a checker; allowed: race"):
        launch(RACE, ignore=["rice"])


def test_hints() -> None:
    x = np.zeros(1024, np.uint32)
    (hint,) = ptxvm.Module.parse(STRIDED, "s.ptx").kernel().launch(x, grid=1, block=32).hints
    assert hint.section == "global memory" and hint.file == "s.ptx"
    assert STRIDED.splitlines()[hint.line - 1].strip().startswith("ld.global")
    assert "32 sectors where 4 would do" in hint.message and hint.share == pytest.approx(28 / 32)


def test_long_messages_are_cut() -> None:
    with pytest.raises(ptxvm.ParseError) as caught:
        ptxvm.Module.parse(HEAD + ".entry k() {\n" + "frob;\n" * 100 + "}\n")
    lines = str(caught.value).splitlines()
    assert len(lines) == 40 and "more lines" in lines[-1]
    assert len(caught.value.diagnostics) > 13


def test_nvcc(tmp_path: Path) -> None:
    try:
        found = find_nvcc()
    except ptxvm.Error:
        pytest.skip("nvcc is not there")
    assert shutil.which(found)
    source = tmp_path / "add.cu"
    source.write_text("__global__ void add(int* x) { x[threadIdx.x] += N; }\n")
    x = np.zeros(32, np.int32)
    result = ptxvm.nvcc(source, options=["-DN=7"]).kernel("add").launch(x, grid=1, block=32)
    assert (x == 7).all()
    assert [Path(each.file).name for each in result.by_line()] == ["add.cu"]
    with pytest.raises(ptxvm.Error, match=r"does not compile(.|\n)*N"):
        ptxvm.nvcc(source)
    with pytest.raises(ptxvm.Error, match="no such file"):
        ptxvm.nvcc(tmp_path / "none.cu")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"card": None}, "card has None; allowed: str"),
        ({"ignore": [1]}, "ignore has 1; allowed: str"),
        ({"ignore": None}, "ignore has None; allowed: a sequence"),
        ({"trace": None}, "trace has None; allowed: a sequence"),
    ],
)
def test_a_launch_names_an_option_of_another_type(options: dict[str, Any], message: str) -> None:
    kernel = ptxvm.Module.parse(RACE).kernel()
    with pytest.raises(TypeError, match=message):
        kernel.launch(np.zeros(64, np.uint32), grid=1, block=64, **options)


def test_names_that_are_no_strings() -> None:
    module = ptxvm.Module.parse(COUNT)
    with pytest.raises(TypeError, match="name has None; allowed: str"):
        module.kernel(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="file has 5; allowed: str"):
        ptxvm.Module.parse(COUNT, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["kernel", "grid", "arch", "launch"])
def test_a_triton_kernel_may_call_a_parameter_like_an_argument_of_run(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def compile(kernel: Any, arguments: Any, named: Any, arch: int, **options: Any) -> Any:
        asked.append((named, arch))
        raise ptxvm.LaunchError("compiled")

    monkeypatch.setattr(ptxvm.triton, "compile", compile)
    parameter = SimpleNamespace(name=name, has_default=False)
    kernel = SimpleNamespace(params=[parameter])
    options = {"arch_" if name == "arch" else "arch": 90}
    with pytest.raises(ptxvm.LaunchError, match="compiled"):
        ptxvm.triton.run(kernel, 1, **{name: 7}, **options)
    assert asked == [({name: 7}, 90)]
