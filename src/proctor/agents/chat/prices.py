"""What tokens cost: a JSON file of prices per model, since no API tells them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from proctor.core.documents import convert, read_json
from proctor.core.errors import InvalidFile, did_you_mean

Dollars = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens."""

    input: Dollars
    output: Dollars
    cached: Dollars | None = None
    """Of input that was cached; as other input if it is missing."""

    def cost_usd(self, *, input_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        """Return what tokens cost. `input_tokens` includes cached ones."""
        cached_usd = self.input if self.cached is None else self.cached
        fresh = max(0, input_tokens - cached_tokens)
        return (fresh * self.input + cached_tokens * cached_usd + output_tokens * self.output) / 1e6


def load_price(file: Path, model: str) -> Price:
    """Return the price of a model; raise InvalidFile if the file has none."""
    prices = convert(read_json(file), dict[str, Price], file)
    if model not in prices:
        known = ", ".join(sorted(prices)[:25]) or "none"
        hint = did_you_mean(model, prices)
        raise InvalidFile(file, f"no price for the model '{model}'{hint}; models in it: {known}")
    return prices[model]
