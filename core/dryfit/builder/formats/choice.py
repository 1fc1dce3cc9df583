"""The forms in which one tensor is given, copied and taken, so that the fewest bytes are moved.

A form is copied once for everyone who takes it, so that takers are chosen for together: one that alone would be served
best by a copy of its own may do with the copy that another needs. Every combination is looked at. There are few, since
takers that can do the same count as one.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import attrs

from dryfit.builder.formats.forms import TensorForm
from dryfit.builder.formats.sides import Side
from dryfit.network.data_types import DataType

SizeOf = Callable[[TensorForm], int]
"""Bytes that the tensor takes in a form."""
Memory = tuple[DataType, str]
"""What tells two ways to lie in memory apart: devices share the memory of the board."""


@attrs.frozen
class FormChoice:
    """One combination of forms.

    Attributes:
        produced: as the giver leaves the tensor.
        taken: for each taker, in their order, the form that it takes.
        converted_bytes: what giver and takers move inside.
    """

    produced: TensorForm
    taken: Sequence[TensorForm]
    converted_bytes: int

    @property
    def copies(self) -> list[TensorForm]:
        """What is copied: each way to lie in memory once, in the form of the first who takes it."""
        copies: dict[Memory, TensorForm] = {}
        for form in self.taken:
            if form.memory != self.produced.memory:
                copies.setdefault(form.memory, form)
        return list(copies.values())


def choose_forms(giver: Side, takers: Sequence[Side], size_of: SizeOf) -> FormChoice:
    """The combination that moves the fewest bytes, after the fewest copies that are forbidden.

    Where bytes are equal, what the user chose is used as it is, and else devices are spared: there is a copy, as
    TensorRT makes it. Then what stands first with giver and takers wins, their native formats.
    """
    if not takers:  # most tensors: they stay inside a segment
        produced, cost = min(giver.forms(), key=lambda form: form[1])
        return FormChoice(produced, [], cost)
    abilities_of = [_abilities(taker) for taker in takers]
    kinds = list(Counter(abilities_of).items())
    best = min(_combinations(giver, [kind for kind, _ in kinds]), key=lambda one: _rank(giver, kinds, one, size_of))
    forms = {abilities: form for (abilities, _), (form, _) in zip(kinds, best[1:], strict=True)}
    (produced, cost), *taken = best
    converted = cost + sum(inside * count for (_, inside), (_, count) in zip(taken, kinds, strict=True))
    return FormChoice(produced, [forms[abilities] for abilities in abilities_of], converted)


@attrs.frozen
class _Abilities:
    """What of a taker decides on the choice: those who have it in common are served alike."""

    forms: tuple[tuple[TensorForm, int], ...]
    is_forbidden: bool
    is_chosen: bool


_Combination = tuple[tuple[TensorForm, int], ...]
"""The giver's form and that of each kind of taker, with the bytes inside."""


def _abilities(taker: Side) -> _Abilities:
    return _Abilities(tuple(taker.forms()), bool(taker.forbids_copy), taker.is_chosen)


def _combinations(giver: Side, kinds: Sequence[_Abilities]) -> Iterator[_Combination]:
    yield from itertools.product(giver.forms(), *(kind.forms for kind in kinds))


def _rank(
    giver: Side, kinds: Sequence[tuple[_Abilities, int]], combination: _Combination, size_of: SizeOf
) -> tuple[int, ...]:
    """What a combination costs; the least is best, and the first of those that cost the same."""
    (produced, cost), *taken = combination
    copies: dict[Memory, TensorForm] = {}
    forbidden = inside_bytes = spared = chosen_copies = 0
    for (form, inside), (abilities, count) in zip(taken, kinds, strict=True):
        is_copied = form.memory != produced.memory
        if is_copied:
            copies.setdefault(form.memory, form)
        forbidden += is_copied and (bool(giver.forbids_copy) or abilities.is_forbidden)
        inside_bytes += inside * count
        if giver.is_chosen or abilities.is_chosen:
            chosen_copies += is_copied
        else:
            spared += inside * count
    moved = cost + inside_bytes + sum(map(size_of, copies.values()))
    return forbidden, moved, chosen_copies, spared
