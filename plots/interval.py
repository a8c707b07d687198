# SPDX-License-Identifier: MIT
"""The mean of a number over runs, and where it is with 95 % confidence."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# 95 % of Student's t are within this, by degrees of freedom from 1.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
STUDENT += (2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086)
STUDENT += (2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)


@dataclass(frozen=True)
class Interval:
    """A mean over runs, and where it is with 95 % confidence."""

    mean: float
    low: float
    high: float

    @property
    def half(self) -> float:
        return (self.high - self.low) / 2

    @property
    def is_exact(self) -> bool:
        """The same in every run: counts, or a row beside itself."""
        return self.low == self.high

    @property
    def has_one(self) -> bool:
        """As a ratio: no difference."""
        return self.low <= 1 <= self.high

    @property
    def decimals(self) -> int:
        """Of percents: the fewest, but one, that show the margin and on which side of it no change is."""
        for digits in (1, 2):
            percents, margin = (
                round(100 * each, digits) for each in (abs(self.mean - 1), self.half)
            )
            if margin and (percents <= margin) == self.has_one:
                return digits
        return 3


def half_width(values: Sequence[float]) -> float:
    degrees = len(values) - 1
    t = STUDENT[degrees - 1] if degrees <= len(STUDENT) else 1.96 + 2.4 / degrees
    return t * statistics.stdev(values) / math.sqrt(len(values))


def interval(values: Sequence[float], cards: Sequence[str]) -> Interval | None:
    """The geometric mean of a value for each run, and its interval: Student's t on the logarithms. Of
    three cards or more, the wider of those from all runs and from the cards' means; of two cards, that
    from all runs, for two means tell next to nothing (t is 12.7). None with less than two runs."""
    if len(values) < 2 or min(values) <= 0:
        return None
    by_card: dict[str, list[float]] = {}
    for value, card in zip(values, cards, strict=True):
        by_card.setdefault(card, []).append(math.log(value))
    logarithms = [each for own in by_card.values() for each in own]
    half = half_width(logarithms)
    if len(by_card) >= 3:
        half = max(half, half_width([statistics.mean(own) for own in by_card.values()]))
    middle = statistics.mean(logarithms)
    return Interval(*map(math.exp, (middle, middle - half, middle + half)))
