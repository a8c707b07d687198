# SPDX-License-Identifier: MIT
"""Small random models of Hugging Face transformers with their attention swapped, on the machine."""

from __future__ import annotations

from typing import Any

import flash_ladder
import flash_ladder.transformers
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

SIZES = {
    "hidden_size": 128,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 100,
    "max_position_embeddings": 128,
}
GPT_OSS = {
    "sliding_window": 5,
    "num_local_experts": 2,
    "num_experts_per_tok": 1,
    "layer_types": ["sliding_attention", "full_attention"],
}
MODELS = {"Llama": {}, "Mistral": {"sliding_window": 5}, "GptOss": GPT_OSS}


def model_and_tokens(name: str) -> tuple[Any, Any]:
    torch.manual_seed(3)
    config = getattr(transformers, f"{name}Config")(**SIZES | MODELS[name])
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    for parameter, values in model.named_parameters():
        if parameter.endswith("sinks"):
            torch.nn.init.normal_(values)
    return model.eval(), torch.randint(100, (2, 20))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_its_attention_swapped(name: str) -> None:
    """As far from float32 as its own attention is, with and without keys in the cache."""
    model, tokens = model_and_tokens(name)
    with torch.no_grad():
        exact = model(tokens).logits
        model.bfloat16()
        own = model(tokens).logits.float()
        model.set_attn_implementation(flash_ladder.transformers.register())
        ours = model(tokens).logits.float()
        first = model(tokens[:, :13], use_cache=True)
        rest = model(tokens[:, 13:], past_key_values=first.past_key_values)
        later = torch.cat([first.logits, rest.logits], dim=1).float()
    allowed = 2 * (own - exact).abs().max()
    assert not torch.equal(ours, own)
    assert (ours - exact).abs().max() <= allowed and (later - exact).abs().max() <= allowed


def test_a_model_is_compiled_as_one_graph() -> None:
    model, tokens = model_and_tokens("Mistral")
    model.bfloat16().set_attn_implementation(flash_ladder.transformers.register())
    torch.compiler.reset()
    with torch.no_grad():
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)(tokens)
        assert torch.equal(compiled.logits, model(tokens).logits)


def test_what_is_refused() -> None:
    model, tokens = model_and_tokens("Llama")
    model.bfloat16().set_attn_implementation(flash_ladder.transformers.register())
    padded = torch.ones_like(tokens)
    padded[0, :3] = 0
    twice = torch.arange(10).repeat(2)[None]
    for options, message in (
        ({"attention_mask": padded}, "attention_mask of shape .2, 20. hides keys; allowed: None"),
        ({"position_ids": twice, "use_cache": False}, "a mask of its own, as for chunks"),
        ({"past_key_values": static(model)}, "the cache has 32 keys, and not all are there"),
    ):
        with pytest.raises(flash_ladder.Refused, match=message), torch.no_grad():
            model(tokens, **options)


def test_a_model_has_gradients() -> None:
    model, tokens = model_and_tokens("Llama")
    found = []
    for attention in ("eager", flash_ladder.transformers.register()):
        model.set_attn_implementation(attention)
        model.bfloat16().zero_grad()
        model(tokens, labels=tokens).loss.backward()
        found.append(torch.cat([each.grad.flatten().float() for each in model.parameters()]))
    exact, ours = found
    assert (ours - exact).norm() < 0.03 * exact.norm()


def static(model: Any) -> Any:
    return transformers.StaticCache(config=model.config, max_cache_len=32)
