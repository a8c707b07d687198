# SPDX-License-Identifier: MIT
"""What can go wrong. A problem that no rung takes, or a bad argument, is a ValueError."""

from __future__ import annotations


class Refused(ValueError):
    """The call is not accepted; the text names the value and what is allowed."""


class KernelError(RuntimeError):
    """The kernel did what no correct kernel does; the text is the machine's diagnostic."""


class EnvironmentFailure(RuntimeError):
    """This machine cannot do it: no GPU, no memory, no PTX, a failed launch."""


BY_STATUS: dict[int, type[Exception]] = {1: KernelError, 2: Refused, 3: EnvironmentFailure}


def raise_for(status: int, message: str) -> None:
    """Raises what an exit code of fa, or a status of the C interface, stands for; 0 is fine."""
    if status:
        raise BY_STATUS.get(status, EnvironmentFailure)(message)
