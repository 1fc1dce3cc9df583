"""Dynamic programming against all placements of small random chains."""

from __future__ import annotations

import itertools
import random

import pytest

from dryfit.answers.placement_search.chain import Chain, best_on_chain


class RandomChain:
    """A chain with costs of whole segments that are no sums of layers, limits, and layers that cannot be joined."""

    def __init__(self, seed: int, amounts: int = 1) -> None:
        source = random.Random(seed)  # noqa: S311  drawn, not secret
        self.count = source.randint(1, 7)
        self.options = [source.choice([("a", "b"), ("a", "b"), ("a", "b"), ("b",)]) for _ in range(self.count)]
        self.segments = {}
        for device, first in itertools.product("ab", range(self.count)):
            for last in range(first, self.count):
                taken = tuple(source.randint(0, 30) / 4 for _ in range(amounts))
                too_large = device == "a" and source.random() < 0.2
                self.segments[device, first, last] = None if too_large else taken
        self.steps = {
            key: tuple(source.randint(0, 12) / 4 for _ in range(amounts))
            for key in itertools.product(range(self.count + 1), (None, "a", "b"), (None, "a", "b"))
        }
        self.cuts = {index for index in range(1, self.count) if source.random() < 0.15}
        self.limits = {"a": source.randint(1, 3)} if source.random() < 0.6 else {}
        self.amounts = amounts

    def chain(self) -> Chain:
        return Chain(
            self.options,
            lambda device, first, last: self.segments[device, first, last],
            lambda layer, before, device: self.steps[layer, before, device],
            lambda layer, device: layer not in self.cuts,
            self.limits,
            "a",
            self.amounts,
        )

    def reckoned(self, devices) -> tuple[float, int] | None:
        """The value of a placement and its segments on "a", cut by hand."""
        total, opened, first = [0.0] * self.amounts, 0, 0
        for layer in range(1, self.count + 1):
            if layer == self.count or devices[layer] != devices[first] or layer in self.cuts:
                taken = self.segments[devices[first], first, layer - 1]
                if taken is None:
                    return None
                total = [one + more for one, more in zip(total, taken, strict=True)]
                opened += devices[first] == "a"
                first = layer
        for layer in range(self.count + 1):
            before = devices[layer - 1] if layer else None
            device = devices[layer] if layer < self.count else None
            total = [one + more for one, more in zip(total, self.steps[layer, before, device], strict=True)]
        return None if opened > self.limits.get("a", opened) else (max(total), opened)


@pytest.mark.parametrize(("seed", "amounts"), [(seed, 1 + seed % 3) for seed in range(150)])
def test_no_placement_of_a_small_chain_is_better(seed, amounts):
    given = RandomChain(seed, amounts)
    every = [given.reckoned(devices) for devices in itertools.product(*given.options)]
    possible = [one for one in every if one is not None]
    found = best_on_chain(given.chain())
    if not possible:
        assert found is None
        return
    assert found is not None
    assert found.is_exact
    assert given.reckoned(found.devices) == min(possible)
    assert max(found.amounts) == min(possible)[0]


def test_a_bound_below_every_placement_leaves_none():
    given = RandomChain(3)
    best = best_on_chain(given.chain())
    assert best is not None
    assert best_on_chain(given.chain(), bound=max(best.amounts)) == best
    assert best_on_chain(given.chain(), bound=max(best.amounts) - 0.1) is None


def test_an_answer_for_which_labels_were_dropped_is_called_no_proof(monkeypatch):
    monkeypatch.setattr("dryfit.answers.placement_search.chain.LABELS", 1)
    found = [best_on_chain(RandomChain(seed, 3).chain()) for seed in range(20)]
    assert any(one is not None and not one.is_exact for one in found)
