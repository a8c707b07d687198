# SPDX-License-Identifier: MIT
"""The PyTorch operators without a GPU: CPU tensors run on the machine, fake ones have shapes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import flash_ladder
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

sdpa = torch.nn.functional.scaled_dot_product_attention


def inputs(shape: Any = (1, 2, 100, 64), seq_kv: int = 0) -> Any:
    torch.manual_seed(1)
    kv = (*shape[:2], seq_kv or shape[2], shape[3])
    return [torch.randn(each, dtype=torch.float32).half() for each in (shape, kv, kv)]


def test_cpu_tensors_run_on_the_machine() -> None:
    q, k, v = inputs(seq_kv=130)
    o, lse = flash_ladder.attention(q, k, v, return_lse=True)
    assert o.dtype == torch.float16 and lse.shape == (1, 2, 100)
    assert (o - sdpa(q, k, v)).abs().max() < 2e-3
    scores = q.float() @ k.float().mT / math.sqrt(64)
    assert (lse - scores.logsumexp(-1)).abs().max() < 1e-3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda q, k, v: (q, k[:, :1].expand_as(k), v), "k has strides .*, 0, .* above 0"),
        (lambda q, k, v: (q.mT.contiguous().mT, k, v), "q has strides .* the last one 1 and"),
        (lambda q, k, v: (q.bfloat16(), k.bfloat16(), v), "dtypes bfloat16, .*allowed: all three"),
        (lambda q, k, v: (q, k, shifted(v)), "v starts at an address .* 16 bytes, .*v.clone()"),
    ],
)
def test_what_is_refused(change: Any, message: str) -> None:
    with pytest.raises(flash_ladder.Refused, match=message):
        flash_ladder.attention(*change(*inputs()))


def fused(dtype: Any = None) -> Any:
    """q, k and v as views of one tensor [batch, seq, 3, heads, dim]."""
    torch.manual_seed(2)
    made = torch.randn(2, 70, 3, 4, 64).to(dtype or torch.bfloat16)
    return [each.transpose(1, 2) for each in made.unbind(2)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_views_windows_and_sinks(dtype: Any) -> None:
    q, k, v = fused(dtype)
    sinks = torch.tensor([1.0, -2.0, 0.5, 3.0])
    options = {"window": (9, 4), "sinks": sinks, "rung": "38"}
    o = flash_ladder.attention(q, k, v, **options)
    assert o.dtype == dtype and o.transpose(1, 2).is_contiguous()
    same = flash_ladder.attention(*(each.contiguous() for each in (q, k, v)), **options)
    assert same.is_contiguous() and torch.equal(o, same)
    behind = torch.arange(70) - torch.arange(70)[:, None]
    scores = (q.float() @ k.float().mT / 8).masked_fill((behind < -9) | (behind > 4), -torch.inf)
    scores = torch.cat([scores, sinks.view(1, 4, 1, 1).expand(2, 4, 70, 1)], dim=3)
    expected = torch.softmax(scores, dim=3)[..., :-1] @ v.float()
    tolerance = 2e-3 if dtype == torch.float16 else 16e-3  # 3 bits of fraction less
    assert (o - expected).abs().max() < tolerance


def packed() -> tuple[list[Any], list[Any]]:
    """q, k and v of three sequences, of which one has no keys; where they begin."""
    torch.manual_seed(3)
    qkv = torch.randn(150, 6, 64).half().split([4, 1, 1], dim=1)
    starts = [torch.tensor([0, 70, 75, 150]), torch.tensor([0, 100, 100, 150])]
    return list(qkv), [each.int() for each in starts]


def test_a_packed_batch() -> None:
    (q, k, v), starts = packed()
    options = dict(zip(("cu_seqlens_q", "cu_seqlens_k"), starts, strict=True))
    o, lse = flash_ladder.attention(q, k, v, **options, causal=True, return_lse=True)
    assert o.shape == q.shape and lse.shape == (4, 150)
    for (a, b), (c, d) in zip(*(itertools.pairwise(each.tolist()) for each in starts), strict=True):
        if c == d:
            assert not o[a:b].any() and lse[:, a:b].isneginf().all()
            continue
        own = (each.transpose(0, 1)[None] for each in (q[a:b], k[c:d], v[c:d]))
        alone, rows = flash_ladder.attention(*own, causal=True, return_lse=True, rung="38")
        assert torch.equal(o[a:b], alone[0].transpose(0, 1)) and torch.equal(lse[:, a:b], rows[0])
    numbers = {name: each.tolist() for name, each in options.items()}
    arrays = (each.numpy() for each in (q, k, v))
    same, rows = flash_ladder.attention(*arrays, **numbers, causal=True, return_lse=True)
    assert (same == o.numpy()).all() and (rows == lse.numpy()).all()

    def compiled(q: Any, k: Any, v: Any) -> Any:
        return flash_ladder.attention(q, k, v, **options, causal=True) + 1

    assert torch.equal(torch.compile(compiled, fullgraph=True, backend="eager")(q, k, v), o + 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cu_seqlens_k": None}, "cu_seqlens_k is None; allowed: cu_seqlens_q and cu_seqlens_k"),
        ({"cu_seqlens_k": [0, 150]}, "cu_seqlens_k is a list; allowed: a torch tensor"),
        ({"cu_seqlens_k": torch.tensor([0, 9, 9, 150])}, "cu_seqlens_k has dtype int64"),
        ({"cu_seqlens_k": torch.tensor([0, 150]).int()}, "cu_seqlens_q has 4 .* cu_seqlens_k 2"),
        ({"cu_seqlens_q": torch.tensor([0, 9, 8, 150]).int()}, "none below the one before"),
        ({"cu_seqlens_q": torch.tensor([0, 9, 9, 149]).int()}, "from 0 to the 150 rows"),
        ({"lengths": torch.tensor([1, 2, 3])}, "lengths are given with cu_seqlens_k"),
        ({"page_table": torch.zeros(3, 1).int()}, "cu_seqlens are given with page_table"),
        ({"rung": "38"}, "38_sinks takes no packed batch; 39 does"),
    ],
)
def test_what_a_packed_batch_is_refused_for(change: Any, message: str) -> None:
    qkv, starts = packed()
    options = {"cu_seqlens_q": starts[0], "cu_seqlens_k": starts[1], **change}
    with pytest.raises(flash_ladder.Refused, match=message):
        flash_ladder.attention(*qkv, **options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there() -> None:
    from flash_ladder import _torch

    shape, half = torch.Size((1, 1, 64, 64)), torch.float16
    with pytest.raises(flash_ladder.EnvironmentFailure, match="choosing the GPU"):
        _torch.plan_for((shape,) * 3, (half,) * 3, 0, "06", False, None, False)


def test_a_cache_of_cpu_tensors() -> None:
    q, _, _ = inputs((2, 8, 1, 64))
    k, v = (torch.randn(2, 7, 2, 16, 64).half()).unbind()
    table = torch.randperm(6, dtype=torch.int32).view(2, 3)
    options = {"page_table": table, "lengths": torch.tensor([37, 5])}
    o = flash_ladder.attention(q, k, v, **options)
    arrays = (each.numpy() for each in (q, k, v))
    table = options["page_table"].numpy()
    same = flash_ladder.attention(*arrays, page_table=table, lengths=[37, 5])
    assert (o.numpy() == same).all()
    for entry, length in enumerate((37, 5)):
        keys, values = (
            each[options["page_table"][entry].long()].transpose(0, 1).reshape(2, 48, 64)[:, :length]
            for each in (k, v)
        )
        expected = sdpa(q[entry], keys.repeat_interleave(4, 0), values.repeat_interleave(4, 0))
        assert (o[entry] - expected).abs().max() < 2e-3
    bits = [each.to(torch.float8_e4m3fn) for each in (k, v)]
    scales = torch.full((2, 2, 2), 0.5)
    o = flash_ladder.attention(q, *bits, kv_scales=scales, **options)
    halves = [each.half() * 0.5 for each in bits]
    assert (o - flash_ladder.attention(q, *halves, **options)).abs().max() < 2e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lengths": torch.tensor([1.5])}, "lengths has dtype torch.float32; allowed: integers"),
        ({"lengths": torch.tensor([2**40])}, "lengths has dtype torch.int64; allowed: integers"),
        ({"lengths": torch.tensor([101])}, "length 101 is not between 0 and seq_kv 100"),
        ({"lengths": [1, 2]}, r"lengths has shape \(2,\); allowed: \(1,\)"),
        ({"lengths": torch.tensor(3)}, r"lengths has shape \(\); allowed: one dimension"),
        ({"page_table": torch.zeros(1, 100)}, "page_table has dtype float32; allowed: int32"),
        ({"page_table": [[0]]}, "page_table is a list; allowed: a torch tensor, as q"),
        ({"kv_scales": torch.ones(2, 1, 2)}, "k has dtype float16 and kv_scales are given"),
        ({"causal": "no"}, "causal is 'no'; allowed: True or False"),
        ({"scale": "1"}, "scale is '1'; allowed: a finite number"),
        ({"rung": None}, "rung is None; allowed: the number or name"),
        ({"sinks": [0.0, 1.0]}, "sinks is a list; allowed: a torch tensor, as q"),
        ({"sinks": torch.zeros(2).half()}, "sinks has dtype float16; allowed: float32"),
        ({"sinks": torch.zeros(4)[::2]}, r"sinks has strides \(2,\) .* pass sinks.contiguous()"),
        (
            {"sinks": torch.zeros(2, requires_grad=True), "lengths": [64]},
            "requires a gradient, and lengths is given; allowed: causal, scale, window, sinks",
        ),
        ({"window": 4}, "window is 4; allowed"),
        ({"k": [1.0]}, "k is a list; allowed: a torch tensor, as q"),
        ({"v": None}, "v is a NoneType; allowed: a torch tensor, as q"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], message: str) -> None:
    q, k, v = inputs((1, 2, 1, 64), seq_kv=100)
    with pytest.raises(flash_ladder.Refused, match=message):
        flash_ladder.attention(**{"q": q, "k": k, "v": v} | options)


def test_tensors_of_two_devices() -> None:
    from flash_ladder import _torch

    with pytest.raises(flash_ladder.Refused, match="k is on meta and q on cpu; they must be"):
        _torch.check_layout("k", torch.empty(1, device="meta"), torch.device("cpu"))
    with pytest.raises(
        flash_ladder.Refused, match="lengths is on meta and q is not; allowed: the CPU"
    ):
        _torch.host_lengths(torch.empty(1, dtype=torch.int32, device="meta"))


def shifted(tensor: Any) -> Any:
    """The same values one element further in memory."""
    room = torch.empty(tensor.numel() + 1, dtype=tensor.dtype)
    return room[1:].view(tensor.shape).copy_(tensor)


def differentiated(call: Any, tensors: Any, d_o: Any) -> tuple[Any, ...]:
    """O and the gradients of q, k and v."""
    leaves = [each.detach().requires_grad_() for each in tensors]
    o = call(*leaves)
    return o, *torch.autograd.grad(o, leaves, d_o)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_gradients(dtype: Any, causal: bool) -> None:
    torch.manual_seed(5)
    made = torch.randn(2, 70, 6, 64).to(dtype).transpose(1, 2)  # views
    q, k, v = made.split([4, 1, 1], dim=1)
    d_o = torch.randn(q.shape).to(dtype)

    def exact(q: Any, k: Any, v: Any) -> Any:
        return sdpa(*(each.double() for each in (q, k, v)), is_causal=causal, enable_gqa=True)

    found = differentiated(lambda *x: flash_ladder.attention(*x, causal=causal), (q, k, v), d_o)
    expected = differentiated(exact, (q, k, v), d_o.double())
    bits = 11 if dtype == torch.float16 else 8
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        assert (one - other).abs().max() < other.abs().max() * 4 * 2**-bits


def test_deterministic_gradients(monkeypatch: Any) -> None:
    """The rung that adds up in a fixed order is asked where PyTorch wants such ones."""
    asked, choose = [], flash_ladder._machine.choose
    monkeypatch.setattr(
        flash_ladder._machine, "choose", lambda *given: asked.append(given[1]) or choose(*given)
    )
    q, k, v = inputs(seq_kv=300)
    found = [differentiated(flash_ladder.attention, (q, k, v), q)]
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    found.append(differentiated(flash_ladder.attention, (q, k, v), q))
    assert asked == ["best", "best", "best", "70"]
    for one, other in zip(*found, strict=True):
        assert (one - other).abs().max() < 1e-2


def test_gradients_that_nobody_asks_for() -> None:
    q, k, v = inputs()
    q.requires_grad_()
    with torch.no_grad():
        assert not flash_ladder.attention(q, k, v).requires_grad
    o, lse = flash_ladder.attention(q, k, v, return_lse=True)
    assert o.requires_grad and not lse.requires_grad


def test_second_derivatives_are_refused() -> None:
    q, k, v = inputs()
    q.requires_grad_()
    loss = (flash_ladder.attention(q, k, v) * q).sum()
    (d_q,) = torch.autograd.grad(loss, q, create_graph=True)
    with pytest.raises(flash_ladder.Refused, match="no second derivative; allowed"):
        torch.autograd.grad(d_q.sum(), q)


def test_gradients_of_windows_and_sinks() -> None:
    q, k, v = fused()
    sinks = torch.tensor([1.0, -2.0, 0.5, 3.0])
    d_o = torch.randn(q.shape).to(q.dtype)
    behind = torch.arange(70) - torch.arange(70)[:, None]
    hidden = (behind < -9) | (behind > 0)

    def exact(q: Any, k: Any, v: Any, sinks: Any) -> Any:
        scores = (q.double() @ k.double().mT / 8).masked_fill(hidden, -torch.inf)
        scores = torch.cat([scores, sinks.double().view(1, 4, 1, 1).expand(2, 4, 70, 1)], dim=3)
        return torch.softmax(scores, dim=3)[..., :-1] @ v.double()

    def ours(q: Any, k: Any, v: Any, sinks: Any) -> Any:
        return flash_ladder.attention(q, k, v, causal=True, window=(9, 0), sinks=sinks)

    found = differentiated(ours, (q, k, v, sinks), d_o)
    expected = differentiated(exact, (q, k, v, sinks), d_o.double())
    for one, other in zip(found, expected, strict=True):
        assert (one - other).abs().max() < other.abs().max() * 4 * 2**-8


def packed_attention(q: Any, k: Any, v: Any, sinks: Any, starts: Any, window: int) -> Any:
    """Under the mask, each sequence by itself, in the type of q."""
    out = []
    for (a, b), (c, d) in zip(*(itertools.pairwise(each.tolist()) for each in starts), strict=True):
        behind = torch.arange(d - c) - torch.arange(b - a)[:, None] - (d - c) + (b - a)
        shared = [each[c:d].transpose(0, 1).repeat_interleave(4, 0) for each in (k, v)]
        scores = q[a:b].transpose(0, 1) @ shared[0].mT / 8
        scores = scores.masked_fill((behind < -window) | (behind > 0), -torch.inf)
        scores = torch.cat([scores, sinks.to(q.dtype).view(4, 1, 1).expand(4, b - a, 1)], dim=2)
        out.append((torch.softmax(scores, dim=2)[..., :-1] @ shared[1]).transpose(0, 1))
    return torch.cat(out)


def test_gradients_of_a_packed_batch() -> None:
    """Of views of one tensor, each sequence by itself; one has no keys, and one no queries."""
    torch.manual_seed(6)
    q, k, v = torch.randn(150, 6, 64).half().split([4, 1, 1], dim=1)
    starts = [torch.tensor([0, 70, 75, 75, 150]), torch.tensor([0, 100, 100, 111, 150])]
    starts = [each.int() for each in starts]
    options = dict(zip(("cu_seqlens_q", "cu_seqlens_k"), starts, strict=True))
    sinks, d_o = torch.tensor([1.0, -2.0, 0.5, 3.0]), torch.randn(150, 4, 64).half()

    def ours(q: Any, k: Any, v: Any, sinks: Any) -> Any:
        return flash_ladder.attention(q, k, v, **options, causal=True, window=(40, 0), sinks=sinks)

    def exact(q: Any, k: Any, v: Any, sinks: Any) -> Any:
        return packed_attention(*(each.double() for each in (q, k, v)), sinks, starts, 40)

    found = differentiated(ours, (q, k, v, sinks), d_o)
    expected = differentiated(exact, (q, k, v, sinks), d_o.double())
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert (one - other).abs().max() < other.abs().max() * 4 * 2**-11
    assert not found[2][100:111].any()  # no query sees them
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    again = differentiated(compiled, (q, k, v, sinks), d_o)
    assert all(torch.equal(*pair) for pair in zip(found, again, strict=True))


def test_gradients_of_views_are_not_computed_from_copies(monkeypatch: Any) -> None:
    problems, run = [], flash_ladder._machine.run
    monkeypatch.setattr(
        flash_ladder._machine, "run", lambda *given: problems.append(given) or run(*given)
    )
    q, k, v = fused()
    leaves = [each.detach().requires_grad_() for each in (q, k, v)]
    found = torch.autograd.grad(flash_ladder.attention(*leaves, causal=True).sum(), leaves)
    problem, rung, addresses = problems[-1]
    assert problem.backward and rung == "73"
    assert problem.strides[:3] == (q.stride(0), q.stride(1), q.stride(2))
    assert [addresses[name] for name in "qkv"] == [each.data_ptr() for each in leaves]
    assert all(each.transpose(1, 2).is_contiguous() for each in found)
    dense = [each.contiguous().requires_grad_() for each in (q, k, v)]
    same = torch.autograd.grad(flash_ladder.attention(*dense, causal=True).sum(), dense)
    for one, other in zip(found, same, strict=True):
        assert (one - other).abs().max() < other.abs().max() * 4 * 2**-8


def test_gradients_in_one_compiled_graph_and_in_a_transform() -> None:
    tensors = inputs((1, 2, 64, 64))
    d_o = torch.randn_like(tensors[0])

    def layer(q: Any, k: Any, v: Any) -> Any:
        return flash_ladder.attention(q * 2, k, v, causal=True)

    expected = differentiated(layer, tensors, d_o)
    torch.compiler.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    found = differentiated(compiled, tensors, d_o)
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))
    by_k = torch.func.grad(lambda k: (layer(tensors[0], k, tensors[2]) * d_o).sum())(tensors[1])
    assert torch.equal(by_k, expected[2])


def test_training_follows_the_attention_of_pytorch() -> None:
    import train

    sizes = {"layers": 1, "width": 64, "heads": 1, "seq": 64}
    rows = train.compare("cpu", batch=2, steps=3, sizes=sizes)
    ours, theirs = (rows[name][0] for name in ("flash_ladder", "pytorch"))
    assert len(ours) == 3 and ours[2] < ours[0]
    assert all(abs(a - b) < 2e-2 for a, b in zip(ours, theirs, strict=True))


def test_forward_mode_differentiation_is_refused() -> None:
    q, k, v = inputs()
    for at, name in enumerate("qkv"):

        def of_one(x: Any, at: int = at) -> Any:
            return flash_ladder.attention(*(x if i == at else (q, k, v)[i] for i in range(3)))

        with pytest.raises(flash_ladder.Refused, match=f"^{name} has a tangent .* no derivative"):
            torch.func.jvp(of_one, ((q, k, v)[at],), (torch.ones_like(q),))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q, torch.ones_like(q))
        with pytest.raises(flash_ladder.Refused, match="q has a tangent"):
            flash_ladder.attention(dual, k, v)
        assert torch.equal(
            flash_ladder.attention(dual.detach(), k, v), flash_ladder.attention(q, k, v)
        )


def jvp(call: Any, x: Any) -> Any:
    return torch.func.jvp(call, (x,), (torch.ones_like(x),))


@pytest.mark.parametrize(
    "around",
    [
        jvp,
        lambda call, x: torch.func.vmap(lambda each: jvp(call, each))(x[None]),
        lambda call, x: jvp(torch.func.vmap(call), x[None]),
        lambda call, x: torch.compile(lambda x: jvp(call, x), backend="aot_eager")(x),
        lambda call, x: torch.func.jacfwd(call)(x),
    ],
    ids=["jvp", "vmap of jvp", "jvp of vmap", "compiled jvp", "jacfwd"],
)
@pytest.mark.parametrize("through", ["attention", "operator"])
def test_forward_mode_is_refused_through_transforms(through: str, around: Any) -> None:
    q, k, v = inputs((1, 1, 64, 64))

    def call(x: Any) -> Any:
        if through == "attention":
            return flash_ladder.attention(q, x, v)
        return torch.ops.flash_ladder.attention(q, x, v, "best", False, None)

    assert loaded()
    with pytest.raises(Exception, match="k has a tangent"):
        around(call, k)


def test_vmap_is_one_launch_of_a_larger_batch() -> None:
    q, k, v = (each.unflatten(0, (2, 1)) for each in fused(torch.float16))
    sinks = torch.tensor([1.0, -2.0, 0.5, 3.0])

    def call(q: Any, k: Any, v: Any) -> Any:
        return flash_ladder.attention(q, k, v, causal=True, sinks=sinks, return_lse=True)

    from flash_ladder import _torch

    runs = []
    with pytest.MonkeyPatch.context() as patch:
        run = _torch._machine.run
        patch.setattr(_torch._machine, "run", lambda *words: runs.append(words) or run(*words))
        mapped = torch.vmap(call, in_dims=(0, None, 0))(q, k[0], v)
    assert len(runs) == 1
    for at in range(2):
        for one, other in zip(mapped, call(q[at], k[0], v[at]), strict=True):
            assert torch.equal(one[at], other)
    with pytest.raises(flash_ladder.Refused, match=r"torch.vmap over .* allowed: over q, k and v"):
        torch.vmap(lambda s: flash_ladder.attention(q[0], k[0], v[0], sinks=s))(torch.zeros(2, 4))


@pytest.mark.parametrize("name", ["attention", "attention_lse"])
def test_opcheck(name: str) -> None:
    operator = getattr(torch.ops.flash_ladder, name).default if loaded() else None
    torch.library.opcheck(operator, (*inputs(), "best", True, 0.2))
    sinks = torch.zeros(4)
    torch.library.opcheck(
        operator, (*fused(), "best", False, None), {"sinks": sinks, "window_left": 5}
    )


def loaded() -> bool:
    """The operators are defined when a tensor is first given."""
    flash_ladder.attention(*inputs((1, 1, 64, 64)))
    return True


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_keeps_one_graph(dynamic: bool) -> None:
    def layer(q: Any, k: Any, v: Any) -> Any:
        o, lse = flash_ladder.attention(q * 2, k, v, causal=True, return_lse=True)
        return o + 1, lse

    torch.compiler.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for seq in (64, 100):
        given = inputs((1, 2, seq, 64))
        for one, other in zip(compiled(*given), layer(*given), strict=True):
            assert torch.equal(one, other)


def test_views_are_compiled_as_they_are() -> None:
    sinks = torch.tensor([1.0, -2.0, 0.5, 3.0])

    def layer(q: Any, k: Any, v: Any) -> Any:
        return flash_ladder.attention(q * 2, k, v, causal=True, window=(7, 0), sinks=sinks) + 1

    torch.compiler.reset()
    given = fused()
    o = torch.compile(layer, fullgraph=True, backend="aot_eager")(*given)
    assert torch.equal(o, layer(*given)) and o.stride() == layer(*given).stride()


def test_fake_tensors_have_shapes() -> None:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        q = torch.empty(2, 3, 64, 128, device="cuda", dtype=torch.float16)
        k = torch.empty(2, 3, 99, 128, device="cuda", dtype=torch.float16)
        o, lse = flash_ladder.attention(q, k, k, return_lse=True)
        view = torch.empty(2, 64, 3, 128, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
        of_view = flash_ladder.attention(view, view, view, window=(3, 0))
    assert (o.shape, o.dtype, o.device.type) == (q.shape, torch.float16, "cuda")
    assert (lse.shape, lse.dtype) == (q.shape[:3], torch.float32)
    assert (of_view.shape, of_view.stride()) == (view.shape, view.stride())


def test_a_transformer_with_its_attention_swapped() -> None:
    from model import swapped

    logits, ours, exact = swapped(
        lambda q, k, v: sdpa(q, k, v, is_causal=True),
        lambda q, k, v: flash_ladder.attention(q, k, v, causal=True),  # the one line
        "cpu",
        layers=2,
        width=128,
        heads=2,
        seq=64,
        words=50,
    )
    assert not torch.equal(ours, logits)
    assert (ours - exact).abs().max() <= 2 * (logits - exact).abs().max()
