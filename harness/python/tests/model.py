# SPDX-License-Identifier: MIT
"""A small transformer in plain PyTorch; its attention is one function."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]  # q, k, v: [batch, heads, seq, dim]


class Block(nn.Module):
    def __init__(self, width: int, heads: int, attention: Attention) -> None:
        super().__init__()
        self.heads, self.attention = heads, attention
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        batch, seq, width = x.shape
        qkv = self.qkv(self.before_attention(x)).view(batch, seq, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).contiguous()
        o = self.attention(q, k, v).transpose(1, 2).reshape(batch, seq, width)
        x = x + self.out(o)
        return x + self.mlp(self.before_mlp(x))


class Transformer(nn.Module):
    """Causal, with learned positions; weights are random."""

    def __init__(
        self, attention: Attention, *, layers: int, width: int, heads: int, seq: int, words: int
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(seq, width)
        self.blocks = nn.Sequential(*(Block(width, heads, attention) for _ in range(layers)))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, words, bias=False))

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.blocks(self.words(tokens) + self.places(places)))


def swapped(first: Attention, second: Attention, device: str, **sizes: int) -> tuple[Tensor, ...]:
    """Logits of one model in float16 with each attention, and with the first one in float32."""
    torch.manual_seed(3)
    model = Transformer(first, **sizes).to(device)
    tokens = torch.randint(sizes["words"], (2, sizes["seq"]), device=device)
    with torch.no_grad():
        exact = model(tokens)
        model.half()
        logits = []
        for attention in (first, second):
            for block in model.blocks:
                block.attention = attention
            logits.append(model(tokens).float())
    return (*logits, exact)
