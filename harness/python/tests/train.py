# SPDX-License-Identifier: MIT
"""Trains a small byte-level transformer from the same seeds with several attentions, each twice:
that of flash_ladder, which computes its gradients as well, and two of PyTorch's.

  python harness/python/tests/train.py --out losses.json

The text is that of the chapters in docs/. Without a GPU the sizes have to be tiny, for the virtual
machine computes every pass.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import flash_ladder
import torch
from model import Attention, Transformer
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

DOCS = Path(__file__).resolve().parents[3] / "docs"
SIZES = {"layers": 6, "width": 512, "heads": 8, "seq": 1024}


def text() -> Tensor:
    """The bytes of all chapters, in the order of their names."""
    joined = b"\n".join(path.read_bytes() for path in sorted(DOCS.glob("*.md")))
    return torch.frombuffer(bytearray(joined), dtype=torch.uint8)


def losses(attention: Attention, device: str, batch: int, steps: int, sizes: Any) -> list[float]:
    """Mean cross-entropy of a byte, in nats, at each step. Weights and batches follow from a seed;
    matrix products and attention are computed in bfloat16, weights kept in float32."""
    torch.manual_seed(1)
    model = Transformer(attention, **sizes, words=256).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    given, seq = text(), sizes["seq"]
    found = []
    for _ in range(steps):
        starts = torch.randint(len(given) - seq, (batch,))
        window = torch.stack([given[at : at + seq + 1] for at in starts.tolist()]).to(device).long()
        with torch.autocast(device, torch.bfloat16):
            logits = model(window[:, :-1])
        loss = torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), window[:, 1:].flatten()
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(loss.detach())
    return torch.stack(found).tolist()


def compare(device: str, *, batch: int, steps: int, sizes: Any) -> dict[str, list[list[float]]]:
    """The losses of two runs with each attention, and of two that are deterministic."""

    def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def in_steps(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return fused(q, k, v)

    def ours(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flash_ladder.attention(q, k, v, causal=True)

    attentions = {"flash_ladder": ours, "pytorch": fused, "pytorch_math": in_steps}
    attentions["flash_ladder_deterministic"] = ours
    found = {}
    for name, attention in attentions.items():
        torch.use_deterministic_algorithms(name.endswith("deterministic"), warn_only=True)
        found[name] = [losses(attention, device, batch, steps, sizes) for _ in range(2)]
    torch.use_deterministic_algorithms(False)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--out", type=Path, help="JSON file for the losses")
    arguments = parser.parse_args()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic with it
    device = "cuda" if torch.cuda.is_available() else "cpu"
    found = compare(device, batch=arguments.batch, steps=arguments.steps, sizes=SIZES)
    for name, runs in found.items():
        print(f"{name}: first {runs[0][0]:.4f}, last {runs[0][-1]:.4f} and {runs[1][-1]:.4f}")
    if arguments.out:
        name = torch.cuda.get_device_name() if device == "cuda" else device
        document = {"device": name, "batch": arguments.batch, **SIZES, "losses": found}
        arguments.out.write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
