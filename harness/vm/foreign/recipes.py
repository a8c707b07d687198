# SPDX-License-Identifier: MIT
"""How to launch kernels of public CUDA repositories, and what is right.

  git clone https://github.com/NVIDIA/cuda-samples FOLDER/cuda-samples
  git clone https://github.com/karpathy/llm.c FOLDER/llm.c
  git clone https://github.com/siboehm/SGEMM_CUDA FOLDER/SGEMM_CUDA
  git clone https://github.com/NVIDIA/cutlass FOLDER/cutlass
  git clone https://github.com/ggml-org/ggml FOLDER/ggml
  git clone https://github.com/b0nes164/GPUPrefixSums FOLDER/GPUPrefixSums
  git clone https://github.com/IST-DASLab/marlin FOLDER/marlin
  git clone https://github.com/bitsandbytes-foundation/bitsandbytes FOLDER/bitsandbytes
  git clone https://github.com/HazyResearch/ThunderKittens FOLDER/ThunderKittens
  git clone --recursive https://github.com/deepseek-ai/DeepGEMM FOLDER/DeepGEMM
  harness/vm/foreign/run.py --cuda FOLDER --recipes harness/vm/foreign/recipes.py

Nothing of those repositories is here but names; their files are compiled as they are. A repository
that is not in FOLDER is left out.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from math import erf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import ptxvm
from numpy.typing import NDArray

from foreign.case import FLOAT4, Case, Wrong, expect

FOLDER = Path(os.environ["FOREIGN_FOLDER"])
SAMPLES, LLM, SGEMM, CUTLASS = "cuda-samples", "llm.c", "SGEMM_CUDA", "cutlass"
GGML, MARLIN, BITS = "ggml", "marlin", "bitsandbytes"
PREFIX, KITTENS, DEEP_GEMM = "GPUPrefixSums", "ThunderKittens", "DeepGEMM"
RANDOM = np.random.default_rng(11)

Array = NDArray[Any]
Run = Callable[["Program"], Sequence[ptxvm.Result]]


@functools.cache
def module_of(path: Path, arch: int, more: tuple[str, ...]) -> ptxvm.Module:
    folders = (path.parent, FOLDER / SAMPLES / "Common", FOLDER / GGML / "include")
    includes = [*(f"-I{each}" for each in folders), f"-I{path.parent.parent}", *more]
    standard = [] if any(each.startswith("-std=") for each in more) else ["-std=c++17"]
    return ptxvm.nvcc(path, f"sm_{arch}{'a' * (arch >= 90)}", [*standard, *includes])


class Program:
    """One .cu file, compiled for one architecture."""

    def __init__(self, path: Path, arch: int, more: Sequence[str] = ()) -> None:
        self.module = module_of(path, arch, tuple(more))

    def __call__(
        self,
        kernel: str,
        grid: Any,
        block: Any,
        *arguments: object,
        shared: int = 0,
        cooperative: bool = False,
        cluster: Any = 1,
    ) -> ptxvm.Result:
        return self.module.kernel(kernel).launch(
            *arguments,
            grid=grid,
            block=block,
            shared=shared,
            cooperative=cooperative,
            cluster=cluster,
        )


CASES: list[Case] = []


def case(
    repository: str, path: str, arch: int = 80, options: Sequence[str] = ()
) -> Callable[[Run], Run]:
    """A case, where its file is there."""

    def add(run: Run) -> Run:
        file = FOLDER / repository / path
        name = f"{file.parent.name}/{file.name}" if repository == SAMPLES else file.name
        if repository != SAMPLES:
            name = f"{file.name}: {run.__name__}"
        if file.is_file():
            CASES.append(
                Case(name, repository, lambda sm: run(Program(file, sm, options)), (arch,))
            )
        return run

    return add


def sample(path: str) -> Callable[[Run], Run]:
    return case(SAMPLES, f"Samples/{path}")


def single(*shape: int) -> Array:
    return RANDOM.normal(size=shape).astype(np.float32)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


@sample("0_Introduction/vectorAdd/vectorAdd.cu")
def vector_add(run: Program) -> Sequence[ptxvm.Result]:
    a, b, c = single(1000), single(1000), zeros(1000)
    result = run("vectorAdd", 4, 256, a, b, c, 1000)
    expect(c, a + b)
    return [result]


@sample("0_Introduction/matrixMul/matrixMul.cu")
def matrix_mul(run: Program) -> Sequence[ptxvm.Result]:
    a, b, c = single(64, 96), single(96, 64), zeros(64, 64)
    result = run("MatrixMulCUDA<32>", (2, 2), (32, 32), c, a, b, 96, 64)
    expect(c, a @ b, rtol=1e-4, atol=1e-4)
    return [result]


@sample("0_Introduction/simpleTemplates/simpleTemplates.cu")
def simple_templates(run: Program) -> Sequence[ptxvm.Result]:
    x, out = single(32), zeros(32)
    result = run("testKernel<float>", 1, 32, x, out, shared=128)
    expect(out, 32 * x)
    return [result]


@sample("0_Introduction/simpleAtomicIntrinsics/simpleAtomicIntrinsics.cu")
def simple_atomics(run: Program) -> Sequence[ptxvm.Result]:
    out = zeros(11, dtype=np.int32)
    out[[8, 10]] = 255
    result = run("testKernel", 16, 128, out)
    expect(out[[0, 1, 3, 4]], [20480, -20480, 2047, 0])
    return [result]


@sample("0_Introduction/simpleOccupancy/simpleOccupancy.cu")
def square(run: Program) -> Sequence[ptxvm.Result]:
    x = np.arange(1000, dtype=np.int32)
    result = run("square", 8, 128, x, 1000)
    expect(x, np.arange(1000) ** 2)
    return [result]


@sample("0_Introduction/asyncAPI/asyncAPI.cu")
def increment(run: Program) -> Sequence[ptxvm.Result]:
    x = np.arange(1024, dtype=np.int32)
    result = run("increment_kernel", 8, 128, x, 26)
    expect(x, np.arange(1024) + 26)
    return [result]


@sample("0_Introduction/simplePrintf/simplePrintf.cu")
def simple_printf(run: Program) -> Sequence[ptxvm.Result]:
    return [run("testKernel", (2, 2), (2, 2, 2), 10)]


@sample("0_Introduction/fp16ScalarProduct/fp16ScalarProduct.cu")
def half_product(run: Program) -> Sequence[ptxvm.Result]:
    a, b = (RANDOM.integers(0, 4, 2048).astype(np.float16) for _ in range(2))
    results = []
    for kernel in ("scalarProductKernel_native", "scalarProductKernel_intrinsics"):
        out = zeros(4)
        results.append(run(kernel, 4, 128, a, b, out, 1024))
        # The sample begins at threadIdx + blockDim + blockIdx, with a + for a *.
        pairs = (a.astype(np.float32) * b).reshape(1024, 2).sum(1)
        starts = [np.arange(128) + 128 + block for block in range(4)]
        expect(out, [sum(pairs[at].sum() for at in (each, each + 512)) for each in starts])
    return results


@sample("0_Introduction/clock/clock.cu")
def timed_reduction(run: Program) -> Sequence[ptxvm.Result]:
    x, out, timer = single(512), zeros(4), zeros(8, dtype=np.int64)
    result = run("timedReduction", 4, 256, x, out, timer, shared=2048)
    expect(out, np.full(4, x.min()))
    return [result]


@sample("2_Concepts_and_Techniques/histogram/histogram256.cu")
def histogram256(run: Program) -> Sequence[ptxvm.Result]:
    data = RANDOM.integers(0, 256, 9600).astype(np.uint8)
    part, out = zeros(8, 256, dtype=np.uint32), zeros(256, dtype=np.uint32)
    results = [
        run("histogram256Kernel", 8, 192, part, data, 2400),
        run("mergeHistogram256Kernel", 256, 256, out, part, 8),
    ]
    expect(out, np.bincount(data, minlength=256))
    return results


@sample("2_Concepts_and_Techniques/histogram/histogram64.cu")
def histogram64(run: Program) -> Sequence[ptxvm.Result]:
    data = RANDOM.integers(0, 256, 4096).astype(np.uint8)
    part, out = zeros(2, 64, dtype=np.uint32), zeros(64, dtype=np.uint32)
    results = [
        run("histogram64Kernel", 2, 64, part, data, 256),
        run("mergeHistogram64Kernel", 64, 256, out, part, 2),
    ]
    expect(out, np.bincount(data >> 2, minlength=64))
    return results


@sample("2_Concepts_and_Techniques/reduction/reduction_kernel.cu")
def reduction(run: Program) -> Sequence[ptxvm.Result]:
    x, results = RANDOM.integers(0, 100, 2048).astype(np.int32), []
    for kernel, blocks in (
        ("reduce0<int>", 8),
        ("reduce1<int>", 8),
        ("reduce2<int>", 8),
        ("reduce3<int>", 4),
        ("reduce4<int, 256u>", 4),
        ("reduce5<int, 256u>", 4),
        ("reduce6<int, 256u, true>", 2),
        ("reduce7<int, 256u, true>", 2),
    ):
        out = zeros(blocks, dtype=np.int32)
        results.append(run(kernel, blocks, 256, x, out, 2048, shared=1024))
        expect(out.sum(), x.sum())
    return results


@sample("2_Concepts_and_Techniques/scan/scan.cu")
def scan(run: Program) -> Sequence[ptxvm.Result]:
    x, out = RANDOM.integers(0, 9, 2048).astype(np.uint32), zeros(2048, dtype=np.uint32)
    result = run("scanExclusiveShared(", 2, 256, out, x, 1024)
    expected = x.reshape(2, 1024).cumsum(1) - x.reshape(2, 1024)
    expect(out, expected.reshape(-1))
    return [result]


@sample("2_Concepts_and_Techniques/shfl_scan/shfl_scan.cu")
def shuffle_scan(run: Program) -> Sequence[ptxvm.Result]:
    x = np.ones(1024, np.int32)
    sums = zeros(4, dtype=np.int32)
    result = run("shfl_scan_test", 4, 256, x, 32, sums, shared=32)
    expect(x, np.tile(np.arange(1, 257), 4))
    expect(sums, [256] * 4)
    return [result]


def sorted_by(run: Program, kernel: str) -> Sequence[ptxvm.Result]:
    keys = RANDOM.integers(0, 1000, 1024).astype(np.uint32)
    values = np.arange(1024, dtype=np.uint32)
    out_keys, out_values = np.zeros_like(keys), np.zeros_like(values)
    result = run(kernel, 1, 512, out_keys, out_values, keys, values, 1024, 1)
    expect(out_keys, np.sort(keys))
    expect(keys[out_values], out_keys)
    return [result]


@sample("2_Concepts_and_Techniques/sortingNetworks/bitonicSort.cu")
def bitonic_sort(run: Program) -> Sequence[ptxvm.Result]:
    return sorted_by(run, "bitonicSortShared(")


@sample("2_Concepts_and_Techniques/sortingNetworks/oddEvenMergeSort.cu")
def odd_even_sort(run: Program) -> Sequence[ptxvm.Result]:
    return sorted_by(run, "oddEvenMergeSortShared")


@sample("2_Concepts_and_Techniques/scalarProd/scalarProd.cu")
def scalar_product(run: Program) -> Sequence[ptxvm.Result]:
    a, b, out = single(8, 1024), single(8, 1024), zeros(8)
    result = run("scalarProdGPU", 4, 256, out, a, b, 8, 1024)
    expect(out, (a * b).sum(1), rtol=1e-3, atol=1e-3)
    return [result]


@sample("2_Concepts_and_Techniques/inlinePTX/inlinePTX.cu")
def inline_ptx(run: Program) -> Sequence[ptxvm.Result]:
    out = zeros(200, dtype=np.int32)
    result = run("sequence_gpu", 1, 256, out, 200)
    expect(out, np.arange(200) % 32)
    return [result]


@sample("2_Concepts_and_Techniques/convolutionSeparable/convolutionSeparable.cu")
def convolution(run: Program) -> Sequence[ptxvm.Result]:
    taps, image = single(17), single(64, 128)
    rows, columns = zeros(64, 128), zeros(64, 128)
    run.module.variables["c_Kernel"].set(taps)
    results = [
        run("convolutionRowsKernel", (1, 16), (16, 4), rows, image, 128, 64, 128),
        run("convolutionColumnsKernel", (8, 1), (16, 8), columns, rows, 128, 64, 128),
    ]
    across = np.array([np.convolve(row, taps, "same") for row in image])
    expect(rows, across, rtol=1e-4, atol=1e-4)
    down = np.array([np.convolve(column, taps, "same") for column in across.T]).T
    expect(columns, down, rtol=1e-3, atol=1e-3)
    return results


@sample("3_CUDA_Features/binaryPartitionCG/binaryPartitionCG.cu")
def odd_even_count(run: Program) -> Sequence[ptxvm.Result]:
    x = RANDOM.integers(0, 50, 1024).astype(np.int32)  # whole blocks only: its tiles need all lanes
    odd, sums = zeros(1, dtype=np.int32), zeros(2, dtype=np.int32)
    result = run("oddEvenCountAndSumCG", 4, 128, x, odd, sums, 1024)
    expect(odd, [(x % 2).sum()])
    expect(sums, [x[x % 2 == 1].sum(), x[x % 2 == 0].sum()])
    return [result]


@sample("3_CUDA_Features/warpAggregatedAtomicsCG/warpAggregatedAtomicsCG.cu")
def filter_positive(run: Program) -> Sequence[ptxvm.Result]:
    x = RANDOM.integers(-9, 10, 1000).astype(np.int32)
    out, count = zeros(1000, dtype=np.int32), zeros(1, dtype=np.int32)
    result = run("filter_arr", 8, 128, out, count, x, 1000)
    kept = x[x > 0]
    expect(count, [len(kept)])
    expect(np.sort(out[: len(kept)]), np.sort(kept))
    return [result]


@sample("3_CUDA_Features/globalToShmemAsyncCopy/globalToShmemAsyncCopy.cu")
def async_copies(run: Program) -> Sequence[ptxvm.Result]:
    results = []
    kernels = ("SingleStage", "MultiStage", "LargeChunk", "MultiStageLargeChunk")
    kernels += ("LargeChunkAWBarrier",)
    for kernel in (*(f"MatrixMulAsyncCopy{each}<16>" for each in kernels), "MatrixMulNaive<16>"):
        a, b, c = single(64, 64), single(64, 64), zeros(64, 64)
        if "LargeChunk" in kernel:  # it reads B at A's offsets: right for one value everywhere
            b[:] = 0.01
        results.append(run(kernel, (4, 4), (16, 16), c, a, b, 64, 64))
        expect(c, a @ b, rtol=1e-4, atol=1e-4)
    return results


@sample("3_CUDA_Features/simpleCudaGraphs/simpleCudaGraphs.cu")
def graph_reduction(run: Program) -> Sequence[ptxvm.Result]:
    x = RANDOM.uniform(size=4096).astype(np.float32)
    part, out = zeros(4, dtype=float), zeros(1, dtype=float)
    results = [
        run("reduce(", 4, 512, x, part, 4096, 4),
        run("reduceFinal", 1, 512, part, out, 4),
    ]
    expect(out, [x.sum(dtype=np.float64)])
    return results


@sample("3_CUDA_Features/StreamPriorities/StreamPriorities.cu")
def copy_kernel(run: Program) -> Sequence[ptxvm.Result]:
    x, out = np.arange(1000, dtype=np.int32), zeros(1000, dtype=np.int32)
    result = run("memcpy_kernel", 2, 128, out, x, x.nbytes)
    expect(out, x)
    return [result]


@sample("3_CUDA_Features/ptxjit/ptxjit_kernel.cu")
def ptxjit(run: Program) -> Sequence[ptxvm.Result]:
    out = zeros(64, dtype=np.int32)
    result = run("myKernel", 2, 32, out)
    expect(out, np.arange(64))
    return [result]


@sample("5_Domain_Specific/BlackScholes/BlackScholes.cu")
def black_scholes(run: Program) -> Sequence[ptxvm.Result]:
    price, strike, years = (
        RANDOM.uniform(*each, 512).astype(np.float32) for each in ((5, 30), (1, 100), (0.25, 10))
    )
    call, put = zeros(512), zeros(512)
    result = run("BlackScholesGPU", 2, 128, call, put, price, strike, years, 0.02, 0.3, 512)
    root = 0.3 * np.sqrt(years)
    d1 = (np.log(price / strike) + (0.02 + 0.045) * years) / root
    n1, n2 = (0.5 * (1 + np.vectorize(erf)(each / sqrt(2))) for each in (d1, d1 - root))
    expect(call, price * n1 - strike * np.exp(-0.02 * years) * n2, rtol=1e-3, atol=1e-3)
    return [result]


@sample("5_Domain_Specific/fastWalshTransform/fastWalshTransform.cu")
def walsh_transform(run: Program) -> Sequence[ptxvm.Result]:
    x, out = single(2, 256), zeros(2, 256)
    result = run("fwtBatch1Kernel", 2, 64, out, x, 8, shared=1024)
    matrix = np.ones((1, 1))
    for _ in range(8):
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    expect(out, x @ matrix, rtol=1e-3, atol=1e-3)
    return [result]


@sample("6_Performance/transpose/transpose.cu")
def transpose(run: Program) -> Sequence[ptxvm.Result]:
    x, results = single(64, 64), []
    kernels = ("Naive", "Coalesced", "NoBankConflicts", "Diagonal")
    for kernel in (f"transpose{each}" for each in kernels):
        out = zeros(64, 64)
        results.append(run(kernel, (2, 2), (32, 16), out, x, 64, 64))
        expect(out, x.T)
    return results


@sample("6_Performance/alignedTypes/alignedTypes.cu")
def aligned_types(run: Program) -> Sequence[ptxvm.Result]:
    x = RANDOM.integers(0, 255, 1024).astype(np.uint8)
    out = np.zeros_like(x)
    result = run("testKernel<unsigned char>", 2, 128, out, x, 1024)
    expect(out, x)
    return [result]


def sgemm(kernel: str, tile: int, threads: Any) -> Run:
    def product(run: Program) -> Sequence[ptxvm.Result]:
        a, b, c = single(128, 128), single(128, 128), zeros(128, 128)
        grid = (128 // tile, 128 // tile)
        result = run(kernel, grid, threads, 128, 128, 128, 1.0, a, b, 0.0, c)
        expect(c, a @ b, rtol=1e-3, atol=1e-3)
        return [result]

    product.__name__ = kernel.split("<")[0]
    return product


for each in (
    ("sgemm_naive", 32, (32, 32)),
    ("sgemm_global_mem_coalesce", 32, 1024),
    ("sgemm_shared_mem_block", 32, 1024),
    ("sgemm1DBlocktiling", 64, 512),
    ("sgemm2DBlocktiling<128, 128, 8, 8, 8>", 128, 256),
    ("sgemmVectorize<128, 128, 8, 8, 8>", 128, 256),
    ("sgemmResolveBankConflicts<128, 128, 8, 8, 8>", 128, 256),
    ("sgemmResolveBankExtraCol<128, 128, 8, 8, 8>", 128, 256),
    ("sgemmAutotuned", 128, 256),
    ("sgemmWarptiling", 128, 128),
):
    case(SGEMM, "src/runner.cu")(sgemm(*each))


def to_bfloat16(values: Array) -> Array:
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def from_bfloat16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


@case(LLM, "dev/cuda/gelu_forward.cu")
def gelu(run: Program) -> Sequence[ptxvm.Result]:
    given = to_bfloat16(single(1024))
    x, results = from_bfloat16(given), []
    expected = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    for kernel, grid in (("gelu_forward_kernel1", 8), ("gelu_forward_kernel2", 1)):
        out = np.zeros_like(given)
        results.append(run(kernel, grid, 128, out, given, 1024))
        expect(from_bfloat16(out), expected, rtol=1e-2, atol=1e-3)
    return results


@case(LLM, "dev/cuda/layernorm_forward.cu")
def layernorm(run: Program) -> Sequence[ptxvm.Result]:
    x, weight, bias = single(8, 256), single(256), single(256)
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    results = []
    for kernel, grid, block in (
        ("layernorm_forward_kernel1", 1, 32),
        ("layernorm_forward_kernel3", 2, 128),
        ("layernorm_forward_kernel4", 2, 128),
    ):
        out, mean, rstd = np.zeros_like(x), zeros(8), zeros(8)
        results.append(run(kernel, grid, block, out, mean, rstd, x, weight, bias, 8, 256))
        expect(out, expected * weight + bias, rtol=1e-3, atol=1e-3)
        expect(mean, x.mean(1), atol=1e-5)
    return results


@case(LLM, "dev/cuda/softmax_forward.cu")
def softmax(run: Program) -> Sequence[ptxvm.Result]:
    x = single(8, 200)
    weights = np.exp(x - x.max(1, keepdims=True))
    results = []
    for kernel, grid, block, shared in (
        ("softmax_forward_kernel1", 1, 32, 0),
        ("softmax_forward_kernel2", 8, 128, 512),
        ("softmax_forward_kernel3", 8, 32, 128),
        ("softmax_forward_online_kernel1", 1, 32, 0),
    ):
        out = np.zeros_like(x)
        results.append(run(kernel, grid, block, out, x, 8, 200, shared=shared))
        expect(out, weights / weights.sum(1, keepdims=True), rtol=1e-4)
    return results


@case(LLM, "dev/cuda/softmax_forward.cu")
def softmax_kernel4(run: Program) -> Sequence[ptxvm.Result]:
    """It has a race: a warp may overwrite the maximum that another one still reads."""
    x = single(8, 200)
    result = run("softmax_forward_kernel4", 8, 128, np.zeros_like(x), x, 8, 200, shared=32)
    if "race" not in {each.checker for each in result.findings}:
        raise Wrong("the race is not found")
    return [result]


@case(LLM, "dev/cuda/crossentropy_forward.cu")
def crossentropy(run: Program) -> Sequence[ptxvm.Result]:
    p = RANDOM.uniform(0.1, 1, size=(2, 8, 30)).astype(np.float32)
    targets, out = RANDOM.integers(0, 30, (2, 8)).astype(np.int32), zeros(2, 8)
    result = run("crossentropy_forward_kernel1", 1, 32, out, p, targets, 2, 8, 30)
    expect(out, -np.log(np.take_along_axis(p, targets[..., None], 2)[..., 0]), rtol=1e-4, atol=1e-5)
    return [result]


@case(LLM, "dev/cuda/permute.cu")
def permute(run: Program) -> Sequence[ptxvm.Result]:
    x = single(4, 5, 6, 7)
    out = zeros(7, 6, 4, 5)
    result = run("permute_kernel", 7, 128, x, out, 4, 5, 6, 7)
    expect(out, x.transpose(3, 2, 0, 1))
    return [result]


@case(GGML, "src/ggml-cuda/norm.cu")
def ggml_norms(run: Program) -> Sequence[ptxvm.Result]:
    x, wide = single(5, 300), single(3, 2000)
    out, wide_out, nothing = (
        np.zeros_like(x),
        np.zeros_like(wide),
        ptxvm.Struct(*[np.uint32(0)] * 3),
    )
    unused = (0, 0, 0, 0, *[nothing] * 4)
    results = [
        run("rms_norm_f32<256, false, false>", 5, 256, x, out, 300, 300, 1500, 1500, 1e-5,
            *unused, *unused, shared=128),
        run("norm_f32<1024>", 3, 1024, wide, wide_out, 2000, 2000, 6000, 6000, 1e-5, shared=256),
    ]  # fmt: skip
    expect(out, x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-5), rtol=1e-4)
    centred = wide - wide.mean(1, keepdims=True)
    expect(wide_out, centred / np.sqrt(wide.var(1, keepdims=True) + 1e-5), rtol=1e-3, atol=1e-4)
    return results


@case(GGML, "src/ggml-cuda/softmax.cu")
def ggml_softmax(run: Program) -> Sequence[ptxvm.Result]:
    """One of them synchronises the whole grid."""

    def parameters(columns: int, rows: int, scale: float) -> ptxvm.Struct:
        whole = (1, columns, rows, rows, columns, rows, 1, 1, 0, 0, 0, 1, 1)
        words = [np.int64(each) for each in whole]
        return ptxvm.Struct(words[0], np.uint32(1), *words[1:], *map(np.float32, (scale, 0, 0, 0)))

    x, wide = single(4, 300), single(2, 40000)
    out, wide_out = np.zeros_like(x), np.zeros_like(wide)
    results = [
        run("soft_max_f32<true, 0, 0, float>", 4, 128, x, 0, 0, out, parameters(300, 4, 0.5),
            shared=4 * 332),
        run("soft_max_f32_parallelize_cols", 16, 256, wide, wide_out, zeros(16), zeros(16),
            parameters(40000, 2, 1), cooperative=True),
    ]  # fmt: skip
    for got, weights in ((out, np.exp(0.5 * x)), (wide_out, np.exp(wide))):
        expect(got, weights / weights.sum(1, keepdims=True), rtol=1e-4)
    return results


@case(GGML, "src/ggml-cuda/argsort.cu")
def ggml_argsort(run: Program) -> Sequence[ptxvm.Result]:
    x, order = single(3, 100), zeros(3, 100, dtype=np.int32)
    kernel = "k_argsort_f32_i32<(ggml_sort_order)1>"
    result = run(kernel, 3, 128, x, order, 100, 128, shared=512)
    expect(np.take_along_axis(x, order, 1), -np.sort(-x, 1))
    return [result]


@case(GGML, "src/ggml-cuda/sumrows.cu")
def ggml_sum_rows(run: Program) -> Sequence[ptxvm.Result]:
    x, sums = single(3, 1000), zeros(3)
    result = run("reduce_rows_f32<false>", 3, 512, x, sums, 1000)
    expect(sums, x.sum(1), rtol=1e-4, atol=1e-4)
    return [result]


@case(PREFIX, "GPUPrefixSumsCUDA/GPUPrefixSumsCUDA.cu")
def look_back_scan(run: Program) -> Sequence[ptxvm.Result]:
    """Blocks wait for the sums of blocks before them."""
    results = []
    for n, kind in ((40000, "Inclusive"), (28672, "Exclusive"), (100, "Inclusive")):
        x = RANDOM.integers(0, 3, n).astype(np.uint32)
        data, blocks = x.copy(), -(-n // 4096)
        kernel = f"ChainedScanDecoupledLookback::CSDL{kind}<8u, 4u>"
        part, ticket = zeros(blocks, dtype=np.uint32), zeros(1, dtype=np.uint32)
        results.append(run(kernel, blocks, 256, data, part, ticket, n // 4))
        expect(data, np.cumsum(x) - x * (kind == "Exclusive"))
    return results


@case(PREFIX, "GPUPrefixSumsCUDA/GPUPrefixSumsCUDA.cu")
def reduce_then_scan(run: Program) -> Sequence[ptxvm.Result]:
    n, blocks = 40000, 10
    x = zeros(blocks * 4096, dtype=np.uint32)  # its last block reads beyond the end
    x[:n] = RANDOM.integers(0, 3, n)
    data, part = x.copy(), zeros(blocks, dtype=np.uint32)
    results = [
        run("ReduceThenScan::Reduce<8u, 4u>", blocks, 256, data, part, n // 4),
        run("ReduceThenScan::SpineScan<32u, 4u>", 1, 1024, part, blocks),
        run("ReduceThenScan::PropagateInclusive<8u, 4u>", blocks, 256, data, part, n // 4),
    ]
    expect(data[:n], np.cumsum(x[:n]))
    return results


def marlin_order() -> Array:
    """Where Marlin wants the weights of 16 rows and 64 columns, in the order of its fragments."""
    order = []
    for lane in range(32):
        rows = [2 * (lane % 4) + each for each in (0, 1, 8, 9)]
        one = [16 * row + lane // 4 + 8 * half for half in (0, 1) for row in rows]
        order += [each + 256 * tile for tile in range(4) for each in one]
    return np.array(order).reshape(-1, 8)[:, [0, 2, 4, 6, 1, 3, 5, 7]].ravel()


@case(MARLIN, "marlin/marlin_cuda_kernel.cu", options=["--expt-relaxed-constexpr"])
def marlin(run: Program) -> Sequence[ptxvm.Result]:
    """Weights of 4 bits; blocks that share a column add up one after the other."""
    results = []
    for m, n, k, blocks, kernel in (
        (13, 256, 512, 3, "Marlin<256, 1, 8, 8, 4, 8>"),
        (64, 512, 256, 5, "Marlin<256, 4, 16, 4, 4, 8>"),
    ):
        weights = RANDOM.integers(0, 16, (k, n)).astype(np.uint32)
        scales = (RANDOM.random((k // 128, n)) / 10 + 0.05).astype(np.float16)
        tiles = weights.reshape(k // 16, 16, n // 16, 16).transpose(0, 2, 1, 3).reshape(-1, 1024)
        nibbles = tiles[:, marlin_order()].reshape(k // 16, n * 2, 8)
        packed = (nibbles << np.arange(0, 32, 4, dtype=np.uint32)).sum(2, dtype=np.uint32)
        by_lane = scales.reshape(-1, 8, 8).swapaxes(1, 2).reshape(scales.shape).copy()
        a, c = single(m, k).astype(np.float16), zeros(m, n, dtype=np.float16)
        locks = zeros(n // 8, dtype=np.int32)
        given = (a, packed, c, by_lane, m, n, k, locks)
        results.append(run(kernel, blocks, 256, *given, shared=98304))
        wide = (weights.astype(float) - 8) * np.repeat(scales.astype(float), 128, 0)
        expect(c, a.astype(float) @ wide, rtol=2e-2, atol=5e-2)
    return results


@case(BITS, "csrc/kernels.cu")
def blockwise_nf4(run: Program) -> Sequence[ptxvm.Result]:
    """To 4 bits and back: each value becomes the nearest of sixteen."""
    n, nothing = 1024, np.uint64(0)
    x, largest, packed = single(n), zeros(16), zeros(n // 2, dtype=np.uint8)
    out = zeros(n)
    to = "kQuantizeBlockwise<float, 64, 2, 0, 2>"
    back = "kDequantizeBlockwise<float, 512, 64, 8, 2>"
    results = [run(to, 16, 32, nothing, x, largest, packed, nothing, 0, n)]
    expect(largest, np.abs(x.reshape(16, 64)).max(1))
    both = (np.arange(16) * 17).astype(np.uint8)  # each code twice
    wide = zeros(32)
    ones = np.ones(16, np.float32)  # it reads the scales of blocks beyond the end
    results.append(run(back, 1, 64, nothing, both, ones, wide, 32, 32))
    table = wide[::2]
    results.append(run(back, 1, 64, nothing, packed, largest, out, 32, n))
    scaled = x / largest.repeat(64)
    nearest = table[np.abs(scaled[:, None] - table).argmin(1)]
    expect(np.abs(out / largest.repeat(64) - nearest) < 1e-5, np.ones(n))
    return results


def kittens(array: Array, rows: int) -> ptxvm.Struct:
    """ThunderKittens' view of a matrix: pointer, extents, and a map of its tiles of 64 columns."""
    high, wide = array.shape
    panels = array.reshape(high, wide // 64, 64).transpose(1, 0, 2)[None, None]
    sizes = (np.uint64(high), np.uint64(wide))
    return ptxvm.Struct(
        array, b"\0\0", *sizes, ptxvm.TensorMap(panels, (1, 1, 1, rows, 64), 128), b"\0"
    )


def bfloats(values: Array) -> Array:
    import ml_dtypes

    return values.astype(ml_dtypes.bfloat16)


KITTENS_OPTIONS = [
    "-std=c++20", "--expt-relaxed-constexpr", "--expt-extended-lambda", "-DKITTENS_HOPPER",
    f"-I{FOLDER / KITTENS / 'include'}", f"-I{FOLDER / KITTENS / 'prototype'}",
]  # fmt: skip


@case(KITTENS, "kernels/gemm/bf16_h100/bf16_h100_gemm.cu", 90, KITTENS_OPTIONS)
def kittens_gemm(run: Program) -> Sequence[ptxvm.Result]:
    m, n, k = 256, 512, 192
    a, b, c = bfloats(single(m, k)), bfloats(single(k, n)), bfloats(zeros(m, n))
    given = ptxvm.Struct(*(kittens(each, 64) for each in (a, b, c)))
    result = run("matmul_template", 4, 384, given, shared=231424)
    expect(c.astype(float), a.astype(float) @ b.astype(float), rtol=2e-2, atol=5e-2)
    return [result]


def gemm(kernel: str, block: int, shared: int, kind: Any, tile: int, *sizes: int) -> Run:
    """Of a size that is no multiple of the tile; B is transposed for the tensor cores."""

    def run(program: Program) -> Sequence[ptxvm.Result]:
        m, n, k = sizes
        a, b = (RANDOM.integers(-4, 5, shape).astype(kind) for shape in ((m, k), (k, n)))
        d = zeros(m, n, dtype=kind)
        columns = np.ascontiguousarray(b.T) if kind is np.float16 else b
        grid = (-(-m // tile), -(-n // tile))
        result = program(kernel, grid, block, a, columns, d, m, n, k, shared=shared)
        expect(d, a.astype(np.float32) @ b.astype(np.float32))
        if result.findings:
            raise Wrong(str(result.findings[0]))
        return [result]

    return run


def cutlass(arch: int) -> Program:
    includes = [f"-I{FOLDER / CUTLASS / 'include'}"]
    return Program(Path(__file__).with_name("cutlass.cu"), arch, includes)


if (FOLDER / CUTLASS / "include").is_dir():
    tensor = gemm("tensor_cores", 128, 24576, np.float16, 64, 100, 72, 40)
    single_precision = gemm("cuda_cores", 256, 16640, np.float32, 128, 130, 29, 19)
    CASES.append(Case("GEMM, tensor cores", CUTLASS, lambda arch: tensor(cutlass(arch)), (80,)))
    CASES.append(
        Case("GEMM, CUDA cores", CUTLASS, lambda arch: single_precision(cutlass(arch)), (80,))
    )


def deep_gemm(arch: int) -> Sequence[ptxvm.Result]:
    """8-bit floats with a scale for 128 values of A and for 128 x 128 of B; alone, and in clusters
    of two that share the tiles of B."""
    import ml_dtypes

    includes = (FOLDER / DEEP_GEMM / "deep_gemm/include", FOLDER / CUTLASS / "include")
    options = ["-std=c++20", "--expt-relaxed-constexpr", *(f"-I{each}" for each in includes)]
    run, results = Program(Path(__file__).with_name("deep_gemm.cu"), arch, options), []
    for kernel, columns, swizzle, blocks, cluster, (m, n, k) in (
        ("128u, 128u, 128u, 128u, 128u, 128u, 4u", 128, 128, 3, 1, (256, 384, 512)),
        ("128u, 96u, 128u, 128u, 128u, 64u, 4u", 96, 64, 4, 2, (512, 288, 640)),
    ):
        a, b = (single(each, k).astype(ml_dtypes.float8_e4m3fn) for each in (m, n))
        of_a = (RANDOM.random((k // 128, m)) + 0.5).astype(np.float32)
        of_b = (RANDOM.random((-(-n // 128), k // 128)) + 0.5).astype(np.float32)
        d = bfloats(zeros(m, n))
        maps = (
            ptxvm.TensorMap(a, (128, 128), 128),
            ptxvm.TensorMap(b, (columns, 128), 128),
            ptxvm.TensorMap(d, (128, swizzle // 2), swizzle),
            ptxvm.TensorMap(of_a, (1, 128)),
        )
        given = (of_b, zeros(1, dtype=np.int32), m, n, k, *maps)
        results.append(run(kernel, blocks, 384, *given, shared=204800, cluster=cluster))
        left = a.astype(float) * of_a.T.repeat(128, 1)
        right = b.astype(float) * of_b.repeat(128, 0)[:n].repeat(128, 1)
        expect(d.astype(float), left @ right.T, rtol=2e-2, atol=0.5)
    return results


def scaled(rows: int, k: int) -> tuple[Array, Array]:
    """Powers of two for 32 values each: four in a word, and one for each value."""
    powers = RANDOM.integers(-2, 3, (rows, k // 32))
    words = (powers + 127).astype(np.uint8).reshape(rows, k // 128, 4).view(np.uint32)[..., 0]
    return np.ascontiguousarray(words.T), np.exp2(powers).repeat(32, 1)


def deep_gemm_100(arch: int) -> Sequence[ptxvm.Result]:
    """bf16, of 8-bit floats and of 8 by 4 bits, the last two with scales; alone and by pairs."""
    import ml_dtypes

    includes = (FOLDER / DEEP_GEMM / "deep_gemm/include", FOLDER / CUTLASS / "include")
    options = ["-std=c++20", "--expt-relaxed-constexpr", *(f"-I{each}" for each in includes)]
    run = Program(Path(__file__).with_name("deep_gemm_100.cu"), arch, options)
    m, n, k = 256, 384, 256
    tile, results = ptxvm.TensorMap, list[ptxvm.Result]()

    def launch(part: str, pairs: int, d: Array, right: Array, *maps: object) -> None:
        (kernel,) = (each for each in run.module.kernels if part in each)
        given = (zeros(1, dtype=np.int32), m, n, k, *maps)
        results.append(run(kernel, 2, 256, *given, shared=232448, cluster=pairs))
        expect(d.astype(float), right, rtol=2e-2, atol=0.5)

    a, b, d = bfloats(single(m, k)), bfloats(single(n, k)), bfloats(zeros(m, n))
    of_a, right = tile(a, (128, 64), 128), a.astype(float) @ b.astype(float).T
    launch("bf16_gemm_implILN4cute4UMMA5MajorE0ELS3_0", 1, d, right, of_a,
           tile(b, (128, 64), 128), tile(d, (128, 64), 128))  # fmt: skip
    columns, sums = np.ascontiguousarray(b.T), zeros(m, n)
    launch("bf16_gemm_implILN4cute4UMMA5MajorE0ELS3_1", 2, sums, right, of_a,
           tile(columns, (64, 64), 128), tile(sums, (128, 32), 128))  # fmt: skip
    a, b = (single(each, k).astype(ml_dtypes.float8_e4m3fn) for each in (m, n))
    (a_words, a_scales), (b_words, b_scales) = scaled(m, k), scaled(n, k)
    scales = tile(a_words, (1, 128)), tile(b_words, (1, 128))
    left, out = a.astype(float) * a_scales, tile(d, (128, 64), 128)
    launch("float_e4m3_tES6_", 2, d, left @ (b.astype(float) * b_scales).T,
           tile(a, (128, 128), 128), tile(b, (64, 128), 128), *scales, out)  # fmt: skip
    codes = RANDOM.integers(0, 16, (n, k))
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
    launch("unpacksmem", 1, d, left @ (FLOAT4[codes] * b_scales).T, tile(a, (128, 128), 128),
           tile(packed, (128, 64), 128, packed=True, gaps=True), *scales, out)  # fmt: skip
    return results


if (FOLDER / DEEP_GEMM / "deep_gemm").is_dir() and (FOLDER / CUTLASS / "include").is_dir():
    CASES.append(Case("GEMM of 8-bit floats", DEEP_GEMM, deep_gemm, (90,)))
    CASES.append(Case("GEMM", DEEP_GEMM, deep_gemm_100, (100,)))
