"""What a run may spend, and what it has spent in all attempts of its folder.

An episode begins only if what is spent, plus what this one and those under way are expected to use, is within
the budget. The expectation is the mean of the scored episodes so far. Until there is one, they go one by one.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from proctor.core.errors import UserError
from proctor.core.interfaces import Policy
from proctor.core.types import Usage
from proctor.exams.results import EpisodeResult
from proctor.runs.accounting import count_text, dollars

ROUNDING = 1e-9
PRICES_OPTION = "prices"
"""The option of policies that takes a price file; without one they do not know what tokens cost."""


class RunBudget(msgspec.Struct, frozen=True, kw_only=True):
    """What a run may spend; None: no limit."""

    usd: float | None = None
    tokens: int | None = None

    @property
    def has_limit(self) -> bool:
        """Whether there is any limit."""
        return self.usd is not None or self.tokens is not None

    def check(self, policy: type[Policy], name: str, options: Mapping[str, Any]) -> None:
        """Raise a UserError if a limit makes no sense, or could not be kept with this policy."""
        if self.usd is not None and not 0 < self.usd < math.inf:
            raise UserError(f"--budget-usd: expected dollars above 0, found {self.usd:g}")
        if self.tokens is not None and self.tokens < 1:
            raise UserError(f"--budget-tokens: expected a number from 1 up, found {self.tokens}")
        if self.has_limit and policy.usage is Policy.usage:
            raise UserError(
                f"the policy '{name}' does not say what it uses, so that no budget can be kept; "
                "leave --budget-usd and --budget-tokens out, or write its method usage()"
            )
        has_prices = PRICES_OPTION in inspect.signature(policy).parameters
        if self.usd is not None and has_prices and not options.get(PRICES_OPTION):
            raise UserError(f"--budget-usd: {_no_price(name)}")


class Spending:
    """What the attempts of a run have used so far, and whether one more episode fits into the budget."""

    def __init__(self, budget: RunBudget, policy: str = "", attempts: Iterable[EpisodeResult] = ()) -> None:
        self._budget, self._policy = budget, policy
        self._total = self._scored = Usage()  # of all attempts, and of those that count
        self._scored_count = 0
        self.problem = ""  # why the budget cannot be kept
        for attempt in attempts:
            self.note(attempt)

    def note(self, result: EpisodeResult) -> None:
        """Take in an attempt."""
        if not self._budget.has_limit:
            return
        if result.usage is UNSET:
            if result.error is None:
                self.problem = f"the policy '{self._policy}' did not say what it used"
            return
        if result.usage.decisions and not (result.usage.tokens or result.usage.cost_usd):
            self.problem = f"the policy '{self._policy}' did not say what its decisions used"
        self._total += result.usage
        if result.is_scored:
            self._scored += result.usage
            self._scored_count += 1
        if self._budget.usd is not None and result.usage.cost_usd is None and result.usage.tokens:
            self.problem = _no_price(self._policy)

    def allows_next(self, in_flight: int) -> bool:
        """Tell whether one more episode may begin while so many are under way."""
        return not self.problem and all(account.allows_next(in_flight) for account in self._accounts())

    def _accounts(self) -> list[_Account]:
        budget, total, scored, count = self._budget, self._total, self._scored, self._scored_count
        accounts = []
        if budget.usd is not None:
            mean_usd = (scored.cost_usd or 0.0) / count if count else None
            accounts.append(_Account("--budget-usd", budget.usd, total.cost_usd or 0.0, mean_usd))
        if budget.tokens is not None:
            mean_tokens = scored.tokens / count if count else None
            accounts.append(_Account("--budget-tokens", budget.tokens, total.tokens, mean_tokens))
        return accounts

    def report(self, left: int) -> str:
        """Say what is spent of each limit, and what the episodes that are left would need."""
        return "; ".join(account.report(left) for account in self._accounts())


class _Account(NamedTuple):
    flag: str
    limit: float
    spent: float
    mean: float | None  # of a scored episode; None before the first

    def allows_next(self, in_flight: int) -> bool:
        if self.mean is None:
            return in_flight == 0 and self.spent < self.limit
        return self.spent + self.mean * (in_flight + 1) <= self.limit * (1 + ROUNDING)

    def report(self, left: int) -> str:
        said = f"{self.words(self.spent)} of {self.words(self.limit)} are spent"
        if self.mean is None:
            return said
        needed = self.spent + self.mean * left
        step = 0.01 if self.flag == "--budget-usd" else 1000
        enough = math.ceil(1.1 * needed / step) * step
        mean = f"an episode takes {self.words(self.mean)} on average"
        return f"{said}, {mean}; {self.flag} {enough:.10g} should do for all"

    def words(self, amount: float) -> str:
        return dollars(amount) if self.flag == "--budget-usd" else f"{count_text(round(amount))} tokens"


def _no_price(policy: str) -> str:
    return (
        f"the policy '{policy}' does not know what its tokens cost; give it a price file with "
        f"--policy-option {PRICES_OPTION}=FILE, or limit the tokens with --budget-tokens"
    )
