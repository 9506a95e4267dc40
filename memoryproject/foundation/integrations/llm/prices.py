"""The cost of tokens, from the configured prices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

MILLION = 1_000_000
_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


@dataclass(frozen=True)
class ModelTokens:
    """The tokens sent to a model and received from it, and their cost.

    The cost is in the currency of the prices; None if the model has no price.
    """

    model: str
    prompt: int
    completion: int
    cost: float | None


def model_tokens(
    model: str, prompt: int, completion: int, prices: Mapping[str, tuple[float, float]]
) -> ModelTokens:
    """Return a model's tokens with their cost.

    ``prices``: the prices of a million input and output tokens, by model. A provider reports a
    model's dated name (gpt-4o-mini-2024-07-18); the price of the undated name applies to it, too.
    """
    price = prices.get(model) or prices.get(_DATED.sub("", model))
    cost = (prompt * price[0] + completion * price[1]) / MILLION if price else None
    return ModelTokens(model, prompt, completion, cost)
