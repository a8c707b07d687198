# SPDX-License-Identifier: MIT
"""scripts/peers.py without PyTorch: the C structures and the callbacks, with a torch made of mocks."""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
import json
import re
import unittest
from contextlib import nullcontext
from typing import Any
from unittest import mock

import support

import peers
from flash_ladder._problem import problem_of
from flash_ladder.peers import API_VERSION

HEADER = support.REPOSITORY / "harness" / "capi" / "capi.h"


def problem(**changes: Any) -> peers.PeerProblem:
    values = {"batch": 2, "heads": 3, "seq_q": 64, "seq_kv": 128, "head_dim": 32, "scale": 0.25}
    values |= {"causal": False, "dtype": peers.FLOAT16}
    return problem_of(values | changes, peers.PeerProblem)


def text_of(shape: peers.PeerProblem) -> bytes:
    return json.dumps(dataclasses.asdict(shape)).encode()


class FakeTensor:
    def __init__(self, array: peers.DeviceArray) -> None:
        self.interface = array.__cuda_array_interface__
        self.copied: Any = None
        self.dtype: Any = None

    def view(self, dtype: Any) -> FakeTensor:
        self.dtype = dtype
        return self

    def copy_(self, other: Any) -> None:
        self.copied = other


class FakeTorch:
    """What Launcher uses of torch."""

    def __init__(self) -> None:
        self.bfloat16 = "bfloat16"
        self.made: list[FakeTensor] = []
        self.streams: list[int] = []
        self.cuda = mock.Mock()
        self.cuda.OutOfMemoryError = type("OutOfMemoryError", (RuntimeError,), {})
        self.cuda.memory_allocated.return_value = 1000
        self.cuda.max_memory_allocated.return_value = 1000
        self.cuda.ExternalStream.side_effect = lambda stream, device: stream
        self.cuda.stream.side_effect = self.enter
        self.cuda.MemPool.side_effect = object
        self.pools: list[Any] = []
        self.cuda.use_mem_pool.side_effect = self.use

    def enter(self, stream: int) -> Any:
        self.streams.append(stream)
        return nullcontext()

    def use(self, pool: Any, device: int) -> Any:
        self.pools.append(pool)
        return nullcontext()

    def as_tensor(self, array: peers.DeviceArray, device: str) -> FakeTensor:
        self.made.append(FakeTensor(array))
        return self.made[-1]


class Callbacks:
    """Calls a peer's C callbacks as the library does."""

    def __init__(self, peer: peers.Peer) -> None:
        self.torch = FakeTorch()
        self.struct = peers.peer_struct(self.torch, peer)
        self.buffer = ctypes.create_string_buffer(b"\xff" * 63, 64)

    @property
    def message(self) -> str:
        return self.buffer.value.decode()

    def supports(self, shape: peers.PeerProblem) -> int:
        address = ctypes.addressof(self.buffer)
        return self.struct.supports(None, text_of(shape), address, len(self.buffer))

    def launch(self, shape: peers.PeerProblem, o: int | None) -> int:
        address, size = ctypes.addressof(self.buffer), len(self.buffer)
        tensors = ctypes.pointer(peers.TensorsStruct(0x1000, 0x2000, 0x3000, o))
        return self.struct.launch(None, text_of(shape), tensors, 0x99, address, size)


class LayoutTest(unittest.TestCase):
    def test_the_structure_matches_the_header(self) -> None:
        text = HEADER.read_text(encoding="utf-8")
        self.assertIn(f"#define FA_API_VERSION {API_VERSION}\n", text)
        end = text.index("} fa_peer;")
        body = text[text.rindex("typedef struct", 0, end) : end]
        offsets = [int(number) for number in re.findall(r"offset (\d+)", body)]
        fields = [getattr(peers.PeerStruct, field[0]).offset for field in peers.PeerStruct._fields_]
        self.assertEqual(offsets, fields)
        self.assertEqual(ctypes.sizeof(peers.PeerStruct), 88)
        self.assertEqual(ctypes.sizeof(peers.TensorsStruct), 72)

    def test_message_is_cut_at_a_character(self) -> None:
        buffer = ctypes.create_string_buffer(b"\xff" * 5, 6)
        peers.write_message(ctypes.addressof(buffer), 5, "ab\N{EURO SIGN}")
        self.assertEqual(buffer.raw, b"ab\0\xff\xff\0")
        peers.write_message(None, 0, "nowhere to write")


class LaunchTest(unittest.TestCase):
    def test_tensors_are_the_benchmark_s_memory(self) -> None:
        seen = []
        peer = peers.Peer("x", forward=lambda shape, tensors: seen.append(tensors))
        calls = Callbacks(peer)
        self.assertEqual(calls.launch(problem(), None), peers.OK)
        self.assertEqual(calls.message, "")
        q, k = seen[0].q.interface, seen[0].k.interface
        self.assertEqual(
            (q["data"], q["shape"], q["typestr"]), ((0x1000, False), (2, 3, 64, 32), "<f2")
        )
        self.assertEqual((k["data"], k["shape"]), ((0x2000, False), (2, 3, 128, 32)))
        self.assertEqual(calls.torch.streams, [0x99])

    def test_views_and_bfloat16_are_the_benchmark_s_memory_too(self) -> None:
        seen = []
        peer = peers.Peer("x", forward=lambda shape, tensors: seen.append(tensors))
        calls = Callbacks(peer)
        # As row_major_strides of kernels/problem.cpp has them: batch, head, row of q, k, v and o.
        q, kv = [64 * 3 * 32, 32, 3 * 32], [128 * 3 * 32, 32, 3 * 32]
        given = problem(dtype=peers.BFLOAT16, strides=[*q, *kv, *kv, *q])
        self.assertEqual(calls.launch(given, 0x4000), peers.OK)
        for tensor, strides in zip(calls.torch.made, (q, kv, kv, q), strict=True):
            in_bytes = tuple(2 * each for each in (*strides, 1))
            self.assertEqual(tensor.interface["strides"], in_bytes)
            self.assertEqual((tensor.interface["typestr"], tensor.dtype), ("<i2", "bfloat16"))
        self.assertIs(seen[0].v, calls.torch.made[2])

    def test_gradients_have_strides_of_their_own_or_those_of_their_tensor(self) -> None:
        numbers = list(range(24))  # of q, k, v, o, d_o, d_q, d_k and d_v
        own = problem(backward=True, strides=numbers)
        self.assertEqual(own.strides_of("d_o"), (12, 13, 14, 1))
        self.assertEqual(own.strides_of("d_k"), (18, 19, 20, 1))
        self.assertIsNone(own.strides_of("lse"))
        shared = problem(backward=True, strides=numbers[:12])
        self.assertEqual(shared.strides_of("d_o"), shared.strides_of("o"))
        self.assertEqual(shared.strides_of("d_k"), (3, 4, 5, 1))

    def test_inputs_are_wrapped_once_and_the_result_copied_only_when_asked(self) -> None:
        calls = Callbacks(peers.Peer("x", forward=lambda shape, tensors: "result"))
        for o in (None, None, 0x4000):
            self.assertEqual(calls.launch(problem(), o), peers.OK)
        self.assertEqual(len(calls.torch.made), 4)
        self.assertEqual(calls.torch.made[3].copied, "result")
        self.assertEqual(calls.torch.made[3].interface["data"], (0x4000, False))
        calls.launch(problem(seq_q=32), None)
        self.assertEqual(len(calls.torch.made), 7)

    def test_a_result_is_arranged_only_when_asked_for(self) -> None:
        arrange = mock.Mock(return_value="arranged")
        peer = peers.Peer("x", forward=lambda shape, tensors: "result", arrange=arrange)
        calls = Callbacks(peer)
        calls.launch(problem(), None)
        arrange.assert_not_called()
        calls.launch(problem(), 0x4000)
        self.assertEqual(calls.torch.made[3].copied, "arranged")
        self.assertEqual(arrange.call_args.args[1], "result")

    def test_a_matrix_product_gets_no_tensors(self) -> None:
        seen = []
        peer = peers.Peer("m", forward=lambda _, tensors: seen.append(tensors), matmul=(8, 8, 8))
        calls = Callbacks(peer)
        self.assertEqual(calls.supports(problem(dtype=peers.FLOAT32)), peers.OK)
        self.assertEqual(calls.launch(problem(), 0x4000), peers.OK)
        self.assertEqual(calls.torch.made, [])
        self.assertIsNone(seen[0].q)
        self.assertEqual(list(calls.struct.matmul), [8, 8, 8])
        self.assertFalse(calls.struct.device_bytes)

    def test_a_copy_gets_no_tensors_either(self) -> None:
        calls = Callbacks(peers.Peer("c", forward=mock.Mock(), copy_bytes=64))
        self.assertEqual(calls.supports(problem(causal=True)), peers.OK)
        self.assertEqual(calls.launch(problem(), 0x4000), peers.OK)
        self.assertEqual(calls.torch.made, [])
        self.assertEqual((calls.struct.copy_bytes, list(calls.struct.matmul)), (64, [0, 0, 0]))

    def test_memory_of_a_launch_is_that_of_the_last_one_with_an_output(self) -> None:
        calls = Callbacks(peers.Peer("x", forward=lambda shape, tensors: "result"))
        told = calls.struct.device_bytes
        self.assertEqual(told[0], -1)
        for peak in (1300, 1700):
            calls.torch.cuda.max_memory_allocated.return_value = peak
            calls.launch(problem(), 0x4000)
            self.assertEqual(told[0], peak - 1000)
        calls.torch.cuda.max_memory_allocated.return_value = 9999
        calls.launch(problem(), None)
        self.assertEqual(told[0], 700)
        self.assertEqual(calls.torch.cuda.reset_peak_memory_stats.call_count, 2)

    def test_what_was_kept_of_a_problem_is_given_back_before_the_next(self) -> None:
        calls = Callbacks(peers.Peer("x", forward=lambda shape, tensors: "result"))
        calls.launch(problem(), None)
        calls.torch.cuda.empty_cache.assert_not_called()
        calls.supports(problem())
        calls.torch.cuda.empty_cache.assert_called_once()
        calls.launch(problem(), None)
        self.assertEqual(len(calls.torch.made), 6)

    def test_each_problem_of_a_peer_has_a_pool_of_its_own(self) -> None:
        calls = Callbacks(peers.Peer("x", forward=lambda shape, tensors: "result"))
        for _ in range(2):
            calls.supports(problem())
            calls.launch(problem(), 0x4000)
            calls.launch(problem(), None)
        first, again, second, last = calls.torch.pools
        self.assertIs(first, again)
        self.assertIs(second, last)
        self.assertIsNot(first, second)
        self.assertIsNotNone(first)

    def test_errors_become_codes(self) -> None:
        def fail(error: BaseException) -> Callbacks:
            return Callbacks(peers.Peer("x", forward=mock.Mock(side_effect=error)))

        with mock.patch("traceback.print_exc"):
            calls = fail(ValueError("first line\nsecond"))
            self.assertEqual(calls.launch(problem(), None), peers.ERROR)
            self.assertEqual(calls.message, "ValueError: first line")
            self.assertEqual(fail(KeyboardInterrupt()).launch(problem(), None), peers.ERROR)
        calls = fail(peers.Unsupported("not this shape"))
        self.assertEqual(calls.launch(problem(), None), peers.UNSUPPORTED)
        self.assertEqual(calls.message, "not this shape")

    def test_out_of_memory(self) -> None:
        forward = mock.Mock()
        calls = Callbacks(peers.Peer("x", forward=forward))
        forward.side_effect = calls.torch.cuda.OutOfMemoryError("tried to allocate 9 GiB")
        self.assertEqual(calls.launch(problem(), None), peers.OUT_OF_MEMORY)
        self.assertEqual(calls.message, "tried to allocate 9 GiB")

    def test_supports(self) -> None:
        calls = Callbacks(peers.Peer("x", check=peers.require_half_square_causal))
        self.assertEqual(calls.supports(problem()), peers.OK)
        self.assertEqual(calls.supports(problem(dtype=peers.FLOAT32)), peers.UNSUPPORTED)
        self.assertEqual(calls.message, "timed in float16 and bfloat16 only")
        self.assertEqual(calls.supports(problem(dtype=peers.BFLOAT16)), peers.OK)
        self.assertEqual(calls.supports(problem(causal=True)), peers.UNSUPPORTED)
        self.assertEqual(calls.supports(problem(causal=True, seq_kv=64)), peers.OK)

    def test_what_a_peer_takes_more(self) -> None:
        plain = Callbacks(peers.Peer("x"))
        more = Callbacks(peers.Peer("y", takes_views=True, takes_windows=True, takes_packed=True))
        views = {"strides": [64 * 96, 32, 96, *[128 * 96, 32, 96] * 2, 64 * 96, 32, 96]}
        for changes, text in (
            (views, "timed on contiguous tensors only"),
            ({"window_left": 5}, "timed without windows only"),
            ({"window_right": 5}, "timed without windows only"),
            ({"query_lengths": [9, 3], "lengths": [9, 4]}, "timed without packed batches only"),
        ):
            self.assertEqual(plain.supports(problem(**changes)), peers.UNSUPPORTED)
            self.assertEqual(plain.message, text)
            self.assertEqual(more.supports(problem(**changes)), peers.OK)
        self.assertEqual(plain.supports(problem(window_right=5, causal=True)), peers.OK)
        self.assertEqual(more.supports(problem(sinks=True)), peers.UNSUPPORTED)
        self.assertEqual(more.message, "timed without sinks only")


class Array:
    """The part of a torch tensor that the standard attention uses, on numpy."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.device = "cpu"

    def transpose(self, a: int, b: int) -> Array:
        return Array(self.values.swapaxes(a, b))

    def reshape(self, *shape: Any) -> Array:
        return Array(self.values.reshape(*shape))

    def __getitem__(self, index: int) -> Array:
        return Array(self.values[index])

    def mul_(self, factor: float) -> Array:
        self.values *= factor
        return self

    def masked_fill_(self, mask: Array, value: float) -> Array:
        self.values[..., mask.values] = value
        return self

    def triu(self, diagonal: int) -> Array:
        return Array(support.need("numpy").triu(self.values, diagonal))


def attention(numpy: Any, shape: peers.PeerProblem, q: Any, k: Any, v: Any) -> Any:
    """Row by row, as a plain sum."""
    out = numpy.empty_like(q)
    group = shape.heads // shape.kv_heads
    for batch, head, row in numpy.ndindex(*q.shape[:3]):
        seen = row + 1 + shape.seq_kv - shape.seq_q if shape.causal else shape.seq_kv
        keys, values = k[batch, head // group, :seen], v[batch, head // group, :seen]
        weights = numpy.exp(shape.scale * (keys @ q[batch, head, row]))
        out[batch, head, row] = weights @ values / weights.sum()
    return out


def inputs_of(numpy: Any, shape: peers.PeerProblem) -> tuple[Any, Any, Any]:
    random = numpy.random.default_rng(1)
    return (
        random.standard_normal(shape.q_shape),
        random.standard_normal(shape.kv_shape),
        random.standard_normal(shape.kv_shape),
    )


class StandardTest(unittest.TestCase):
    """torch_standard computes attention: its formula on numpy against a plain sum."""

    def setUp(self) -> None:
        self.numpy = numpy = support.need("numpy")
        softmax = lambda s: numpy.exp(s) / numpy.exp(s).sum(-1, keepdims=True)  # noqa: E731
        torch = mock.Mock(__version__="0", inf=numpy.inf, bool=bool)
        torch.no_grad = nullcontext
        torch.matmul = lambda a, b: Array(a.values @ b.values)
        torch.softmax = lambda s, dim: Array(softmax(s.values))
        torch.ones = lambda *shape, dtype, device: Array(numpy.ones(shape, dtype))
        self.peer = peers.standard_peer(torch)

    def check(self, shape: peers.PeerProblem) -> None:
        q, k, v = inputs_of(self.numpy, shape)
        out = self.peer.forward(shape, peers.Tensors(Array(q), Array(k), Array(v))).values
        self.numpy.testing.assert_allclose(out, attention(self.numpy, shape, q, k, v))

    def test_attention(self) -> None:
        self.check(problem(seq_q=5, seq_kv=7))

    def test_the_mask_is_aligned_bottom_right_and_follows_the_problem(self) -> None:
        self.check(problem(seq_q=5, seq_kv=7, causal=True))
        self.check(problem(seq_q=6, seq_kv=6, causal=True))

    def test_a_row_without_a_key_is_refused(self) -> None:
        with self.assertRaisesRegex(peers.Unsupported, "without a visible key"):
            self.peer.check(problem(seq_q=8, seq_kv=7, causal=True))
        self.peer.check(problem(seq_q=8, seq_kv=7))


class FlashInfer:
    """The part of FlashInfer that its peer uses, on numpy. `ran` names what ran."""

    __version__ = "0.1"

    def __init__(self, numpy: Any) -> None:
        self.numpy = numpy
        self.ran: list[str] = []
        self.BatchDecodeWithPagedKVCacheWrapper = lambda *words, **options: FlashInferWrapper(
            self, *words, **options
        )
        self.BatchPrefillWithRaggedKVCacheWrapper = self.BatchDecodeWithPagedKVCacheWrapper

    def single_decode_with_kv_cache(
        self, q: Any, k: Any, v: Any, kv_layout: str, sm_scale: float
    ) -> Any:
        self.ran.append(f"single {kv_layout}")
        group = len(q.values) // len(k.values)
        shape = problem(
            batch=1, heads=len(q.values), kv_heads=len(k.values), seq_q=1, scale=sm_scale
        )
        shape = dataclasses.replace(shape, seq_kv=k.values.shape[1])
        self.numpy.testing.assert_equal(group, shape.heads // shape.kv_heads)
        q = q.values[None, :, None]
        out = attention(self.numpy, shape, q, k.values[None], v.values[None])
        return Array(out[0, :, 0])


class FlashInferWrapper:
    """Of a paged cache when it is planned with pages, else of ragged rows."""

    def __init__(
        self,
        package: FlashInfer,
        workspace: Any,
        kv_layout: str,
        backend: str,
        use_tensor_cores: bool | None = None,
    ) -> None:
        self.package = package
        cores = {None: "", True: " tensor cores", False: " CUDA cores"}[use_tensor_cores]
        self.name = f"{kv_layout} {backend}{cores}"

    def plan(self, *words: Any, sm_scale: float, **options: Any) -> None:
        self.words, self.scale, self.options = words, sm_scale, options

    def run(self, q: Any, *cache: Any) -> Any:
        self.package.ran.append(self.name)
        paged = "q_len_per_req" in self.options
        numpy, kv = self.package.numpy, [each.values for each in (cache[0] if paged else cache)]
        if paged:
            indptr, indices, last, heads, kv_heads, dim, page = self.words
            queries = self.options["q_len_per_req"]
            causal = queries > 1
            assert list(last) == [page] * (len(indptr) - 1)
            assert kv[0].shape[1:] == (kv_heads, page, dim)
            requests = [
                [each[indices[at:end], 0].reshape(-1, dim) for each in kv]
                for at, end in itertools.pairwise(indptr)
            ]
            offsets = numpy.arange(len(indptr)) * queries
        else:
            offsets, indptr, heads, kv_heads, dim = self.words
            causal = self.options["causal"]
            assert kv[0].shape[1:] == (kv_heads, dim)
            requests = [[each[at:end, 0] for each in kv] for at, end in itertools.pairwise(indptr)]
        assert q.values.shape == (offsets[-1], heads, dim)
        out = numpy.empty_like(q.values)
        for (k, v), at, end in zip(requests, offsets, offsets[1:], strict=False):
            shape = problem(
                **{"batch": 1, "heads": heads, "kv_heads": 1, "seq_q": end - at, "seq_kv": len(k)},
                scale=self.scale,
                causal=causal,
            )
            rows = q.values[at:end].swapaxes(0, 1)[None]
            done = attention(numpy, shape, rows, k[None, None], v[None, None])
            out[at:end] = done[0].swapaxes(0, 1)
        return Array(out)


class FlashInferTest(unittest.TestCase):
    def setUp(self) -> None:
        self.numpy = numpy = support.need("numpy")
        self.package = FlashInfer(numpy)
        self.torch = mock.Mock(int32=numpy.int32, float16="half")
        self.torch.no_grad = nullcontext
        self.torch.arange = lambda *ends, dtype: numpy.arange(*ends, dtype=dtype)
        self.torch.full = lambda shape, value, dtype: numpy.full(shape, value, dtype)
        self.torch.cuda.get_device_capability.return_value = (9, 0)
        with mock.patch.dict("sys.modules", {"flashinfer": self.package}):
            self.peer = peers.flashinfer_peer(self.torch)

    def kernels(self, **changes: Any) -> list[str]:
        """What ran for a problem; each is right."""
        shape = problem(**{"causal": True, "seq_kv": 24, "head_dim": 64, **changes})
        q, k, v = inputs_of(self.numpy, shape)
        tensors = peers.Tensors(Array(q), Array(k), Array(v))
        expected = attention(self.numpy, shape, q, k, v)
        self.package.ran.clear()
        copy = peers.Tensors(tensors.q, Array(k.copy()), Array(v.copy()))
        for call in peers.flashinfer_calls(self.torch, self.package, shape, "device"):
            for given in (tensors, copy):  # planned once, for every copy of the cache
                out = self.peer.arrange(shape, call(given)).values
                self.numpy.testing.assert_allclose(out, expected)
            del self.package.ran[-1]
        return list(self.package.ran)

    def test_each_kernel_gets_the_problem_in_its_layout(self) -> None:
        prefill, cores = ["NHD fa2", "NHD fa3"], ["HND fa2 tensor cores", "HND fa2 CUDA cores"]
        one = {"seq_q": 1, "heads": 8, "kv_heads": 2}
        self.assertEqual(self.kernels(**one), prefill + cores)
        self.assertEqual(self.kernels(**one, batch=1), [*prefill, *cores, "single HND"])
        self.assertEqual(self.kernels(**one | {"heads": 10}), prefill + cores[:1])
        self.assertEqual(self.kernels(seq_q=4, heads=8, kv_heads=2), prefill + cores[:1])
        self.assertEqual(self.kernels(seq_q=4, causal=False), prefill)
        self.assertEqual(self.kernels(seq_q=1, seq_kv=7, causal=False), prefill + cores)
        self.torch.cuda.get_device_capability.return_value = (8, 0)
        self.assertEqual(self.kernels(seq_q=3), [prefill[0], cores[0]])

    def test_the_fastest_is_kept_until_the_next_problem(self) -> None:
        shape = problem(seq_q=1, head_dim=64)
        tensors = peers.Tensors(*map(Array, inputs_of(self.numpy, shape)))
        times = iter((4.0, 3.0, 1.0, 2.0) * 2)

        def timed(torch: Any, call: Any) -> float:
            return next(times)

        with mock.patch.object(peers, "timed", timed):
            for _ in range(2):
                self.peer.check(shape)
                for _ in range(3):
                    self.peer.forward(shape, tensors)
        self.assertEqual(self.package.ran, ["HND fa2 tensor cores"] * 6)
        self.assertEqual(next(times, None), None)

    def test_refusals(self) -> None:
        for changes, text in (
            ({"dtype": peers.FLOAT32}, "timed in float16 only"),
            ({"seq_q": 17}, "timed with at most 16 queries only"),
            ({"seq_q": 2, "seq_kv": 1, "causal": True}, "no more queries than keys"),
            ({"head_dim": 32}, "takes head_dim 64, 128, 256 only"),
        ):
            with self.assertRaisesRegex(peers.Unsupported, text):
                self.peer.check(problem(**{"seq_q": 16, "head_dim": 64} | changes))
        self.peer.check(problem(seq_q=16, head_dim=64))
        calls = Callbacks(self.peer)
        self.assertEqual(calls.supports(problem(seq_q=1, head_dim=64, page=16)), peers.UNSUPPORTED)

    def test_without_the_package(self) -> None:
        with mock.patch.dict("sys.modules", {"flashinfer": None}):
            peer = peers.make_peer(self.torch, "flashinfer")
        self.assertIn("flashinfer cannot be imported", peer.unavailable)
        self.assertEqual(self.peer.variant, "flashinfer 0.1")


class TuningTest(unittest.TestCase):
    def test_the_host_queues_all_launches_before_the_first_one_runs(self) -> None:
        torch = mock.MagicMock()
        events = torch.cuda.Event.side_effect = [mock.MagicMock(), mock.MagicMock()]
        order = mock.MagicMock()
        order.attach_mock(torch.cuda._sleep, "hold")
        order.attach_mock(events[0].record, "begin")
        order.attach_mock(events[1].record, "end")
        events[0].elapsed_time.return_value = 6.0
        self.assertEqual(peers.timed(torch, order.launch, 3), 2.0)
        names = [call[0] for call in order.mock_calls]
        self.assertEqual(names, ["launch", "hold", "begin", *["launch"] * 3, "end"])


class AvailabilityTest(unittest.TestCase):
    def test_without_torch_every_peer_says_so(self) -> None:
        with mock.patch.dict("sys.modules", {"torch": None}):
            torch, found = peers.make_peers(list(peers.FACTORIES))
        self.assertIsNone(torch)
        self.assertEqual([peer.id for peer in found], list(peers.FACTORIES))
        for peer in found:
            self.assertIn("torch cannot be imported", peer.unavailable)
            struct = peers.peer_struct(None, peer)
            self.assertFalse(struct.launch)
            self.assertIn(b"torch", struct.unavailable_reason)

    def test_a_ceiling_stays_one_when_it_is_unavailable(self) -> None:
        self.assertEqual(peers.unavailable_peer("cublas", "no torch").matmul, (8192, 8192, 8192))
        self.assertGreater(peers.unavailable_peer("copy", "no torch").copy_bytes, 0)
        self.assertTrue(peers.unavailable_peer("copy", "no torch").is_ceiling)
        self.assertFalse(peers.unavailable_peer("fa2", "no torch").is_ceiling)

    def test_a_module_that_breaks_while_loading_is_unavailable(self) -> None:
        with mock.patch("importlib.import_module", side_effect=OSError("libx.so is missing")):
            with self.assertRaisesRegex(peers.Unavailable, "libx.so is missing"):
                peers.import_or_unavailable("flash_attn_3._C")

    def test_flash_attention_3_from_either_package(self) -> None:
        torch, tensors = mock.MagicMock(), mock.Mock()
        torch.cuda.get_device_capability.return_value = (9, 0)
        torch.ops.flash_attn_3.fwd.return_value = (tensors.out, tensors.lse)
        with mock.patch.dict("sys.modules", {"flash_attn_3": None, "xformers": None}):
            with self.assertRaisesRegex(peers.Unavailable, "flash_attn_3.*; .*xformers"):
                peers.fa3_peer(torch)
        with (
            mock.patch.dict("sys.modules", {"flash_attn_3": None}),
            mock.patch.dict("sys.modules", {"xformers.flash_attn_3._C": mock.Mock()}),
            mock.patch("importlib.metadata.version", return_value="0.0.34"),
        ):
            peer = peers.fa3_peer(torch)
            torch.cuda.get_device_capability.return_value = (10, 0)
            with self.assertRaisesRegex(peers.Unavailable, "compute capability 9.0 alone"):
                peers.fa3_peer(torch)
        self.assertEqual(peer.variant, "xformers 0.0.34")
        out = peer.forward(problem(causal=True), tensors)
        self.assertIs(out, tensors.out.transpose(1, 2))
        (q, _, _), options = torch.ops.flash_attn_3.fwd.call_args
        self.assertIs(q, tensors.q.transpose(1, 2))
        plain = {"softmax_scale": 0.25, "is_causal": True, "num_splits": 1}
        self.assertEqual(options, plain)
        for shape, window in (
            (problem(causal=True, window_left=9, window_right=4), (9, 0)),
            (problem(window_left=9, window_right=4), (9, 4)),
            (problem(window_right=4), (-1, 4)),
        ):
            peer.check(shape)
            peer.forward(shape, tensors)
            options = torch.ops.flash_attn_3.fwd.call_args.kwargs
            sides = (options["window_size_left"], options["window_size_right"])
            self.assertEqual(sides, window)
            self.assertEqual(options["is_causal"], shape.causal)

    def test_versions(self) -> None:
        self.assertEqual(peers.dotted_cudnn_version(91900), "9.19.0")


class CommandLineTest(unittest.TestCase):
    def test_our_options_are_taken_out(self) -> None:
        words = ["all", "--peers", "fa2,fa2,cublas", "--seqs", "512", "--causal"]
        options = peers.parse_arguments(words)
        self.assertEqual(options.bench, ["all", "--seqs", "512", "--causal"])
        self.assertEqual(options.peers, ["fa2", "cublas"])

    def test_bad_options_are_one_line_and_exit_2(self) -> None:
        cases = {
            ("--peers", "fa9"): "unknown peer 'fa9'; allowed: fa2, cudnn, cublas, triton, fa3",
            ("--peers", ","): "--peers names no peer",
            ("all", "--peers"): "--peers needs a value",
            ("all",): "/nonexistent/libfa.so not found",
            ("06", "--then"): "--then stands between two benches, and one of them has no words",
            ("06", "--then", "07", "--peers", "fa9"): "unknown peer 'fa9'",
        }
        for words, text in cases.items():
            with mock.patch.dict("os.environ", {"FA_BUILD_DIR": "/nonexistent"}):
                code, _, err = support.run_main(peers.main, *words)
            self.assertEqual(code, 2, words)
            self.assertIn(f"peers.py: error: {text}", err)
            self.assertEqual(err.count("\n"), 1)

    def test_each_bench_has_its_words_and_its_peers_and_the_worst_code_is_told(self) -> None:
        structs: list[object] = []
        ran: list[tuple[list[str], list[object]]] = []
        codes = [3, 0, 1, 2, 0]

        def run(library: object, words: list[str], given: list[object]) -> int:
            ran.append((words, given))
            return codes[len(ran) - 1]

        def struct(torch: object, peer: peers.Peer) -> str:
            structs.append(peer.id)
            return peer.id

        found = mock.patch.multiple(
            peers,
            run_bench=run,
            peer_struct=struct,
            load_library=mock.Mock(),
            find_library=mock.Mock(),
        )
        words = ("06 --peers fa2", "07 --peers cudnn,fa2", "08 --peers fa2")
        with mock.patch.dict("sys.modules", {"torch": None}), found:
            self.assertEqual(peers.main(" --then ".join(words).split()), 1)
            self.assertEqual(
                ran, [(["06"], ["fa2"]), (["07"], ["cudnn", "fa2"]), (["08"], ["fa2"])]
            )
            self.assertEqual(structs, ["fa2", "cudnn"])  # one of each, for all benches
            # A refusal ends it.
            self.assertEqual(
                peers.main(["1", "--peers", "fa2", "--then", "2", "--peers", "fa2"]), 2
            )
            self.assertEqual(len(ran), 4)

    def test_list(self) -> None:
        with mock.patch.dict("sys.modules", {"torch": None}):
            code, out, _ = support.run_main(peers.main, "--peers", "list")
        self.assertEqual(code, 0)
        self.assertEqual(len(out.splitlines()), len(peers.FACTORIES))


if __name__ == "__main__":
    unittest.main()
