"""What tokens cost, by the prices that were set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

MILLION = 1_000_000
_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


@dataclass(frozen=True)
class ModelTokens:
    """Tokens that went to a model and came from it, and their cost in the currency of the
    prices; None where none is set for the model."""

    model: str
    prompt: int
    completion: int
    cost: float | None


def model_tokens(
    model: str, prompt: int, completion: int, prices: Mapping[str, tuple[float, float]]
) -> ModelTokens:
    """With the cost by ``prices``: of a million tokens in and of a million out, by model. A
    provider tells a model's dated name (gpt-4o-mini-2024-07-18); the price of the undated one
    counts for it, too."""
    price = prices.get(model) or prices.get(_DATED.sub("", model))
    cost = (prompt * price[0] + completion * price[1]) / MILLION if price else None
    return ModelTokens(model, prompt, completion, cost)
