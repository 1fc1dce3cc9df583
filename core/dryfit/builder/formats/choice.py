"""The format of each tensor on each device, and the copies between them, chosen to move the fewest bytes.

A device works in its native format (`TargetVariant.native_format`); what it reads or writes in another one it converts
itself, which moves the tensor once more. Where that costs as much as a copy, there is a copy, as TensorRT makes it.
Where a type changes inside one loadable, the device converts the numbers on their way, and there is none.
Because the inside of a segment is thereby fixed, the choice at one tensor's borders does not touch another's, and the
best choice for each tensor is the best for the whole network.

A form is copied once for everyone who takes it, so that takers are chosen for together: one that alone would be served
best by a copy of its own may do with the copy that another needs. Every combination is looked at. There are few, since
takers that can do the same count as one.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from dryfit.attrs_classes import frozen
from dryfit.builder.formats.forms import TensorForm, TensorForms
from dryfit.builder.formats.sides import FormatSide, Sides
from dryfit.engine.plan import Reformat
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor, TensorLocation

SizeOf = Callable[[TensorForm], int]
"""Bytes that the tensor takes in a form."""
Memory = tuple[DataType, str]
"""What tells two ways to lie in memory apart: devices share the memory of the board."""


@frozen
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
        return _copies(self.produced, self.taken)


def _copies(produced: TensorForm, taken: Iterable[TensorForm]) -> list[TensorForm]:
    copies: dict[Memory, TensorForm] = {}
    for form in taken:
        if form.memory != produced.memory:
            copies.setdefault(form.memory, form)
    return list(copies.values())


def choose_forms(giver: FormatSide, takers: Sequence[FormatSide], size_of: SizeOf) -> FormChoice:
    """The combination that moves the fewest bytes, after the fewest copies that are forbidden.

    Where bytes are equal, what the user chose is used as it is, and else devices are spared: there is a copy, as
    TensorRT makes it. Then what stands first with giver and takers wins, their native formats.
    """
    if not takers:  # most tensors: they stay inside a segment
        produced, cost = min(giver.forms(), key=lambda form: form[1])
        return FormChoice(produced, [], cost)
    plain = _as_they_are(giver, takers)
    if plain is not None:
        return plain
    abilities_of = [_abilities(taker) for taker in takers]
    kinds = list(Counter(abilities_of).items())
    best = min(_combinations(giver, [kind for kind, _ in kinds]), key=lambda one: _rank(giver, kinds, one, size_of))
    forms = {abilities: form for (abilities, _), (form, _) in zip(kinds, best[1:], strict=True)}
    (produced, cost), *taken = best
    converted = cost + sum(inside * count for (_, inside), (_, count) in zip(taken, kinds, strict=True))
    return FormChoice(produced, [forms[abilities] for abilities in abilities_of], converted)


def _as_they_are(giver: FormatSide, takers: Sequence[FormatSide]) -> FormChoice | None:
    """The native forms where they cost nothing and lie alike in memory: nothing is better, and they stand first."""
    (produced, cost), *_ = giver.forms()
    taken = [next(iter(taker.forms())) for taker in takers]
    if cost or any(inside or form.memory != produced.memory for form, inside in taken):
        return None
    return FormChoice(produced, [form for form, _ in taken], 0)


@frozen
class _Abilities:
    """What of a taker decides on the choice: those who have it in common are served alike."""

    forms: tuple[tuple[TensorForm, int], ...]
    is_forbidden: bool
    is_chosen: bool


_Combination = tuple[tuple[TensorForm, int], ...]
"""The giver's form and that of each kind of taker, with the bytes inside."""


def _abilities(taker: FormatSide) -> _Abilities:
    return _Abilities(tuple(taker.forms()), bool(taker.forbids_copy), taker.is_chosen)


def _combinations(giver: FormatSide, kinds: Sequence[_Abilities]) -> Iterator[_Combination]:
    yield from itertools.product(giver.forms(), *(kind.forms for kind in kinds))


def _rank(
    giver: FormatSide, kinds: Sequence[tuple[_Abilities, int]], combination: _Combination, size_of: SizeOf
) -> tuple[int, ...]:
    """What a combination costs; the least is best, and the first of those that cost the same."""
    (produced, cost), *taken = combination
    forbidden = inside_bytes = spared = chosen_copies = 0
    for (form, inside), (abilities, count) in zip(taken, kinds, strict=True):
        is_copied = form.memory != produced.memory
        forbidden += is_copied and (bool(giver.forbids_copy) or abilities.is_forbidden)
        inside_bytes += inside * count
        if giver.is_chosen or abilities.is_chosen:
            chosen_copies += is_copied
        else:
            spared += inside * count
    moved = cost + inside_bytes + sum(map(size_of, _copies(produced, (form for form, _ in taken))))
    return forbidden, moved, chosen_copies, spared


@frozen
class Formats:
    """The choice for a network.

    Attributes:
        forms: tensor name to forms, for tensors that carry data between devices or at the border of the engine, and
            for those inside a segment; constants and shape tensors have none.
        reformats: every copy, with its cause.
        problems: copies that may not be made.
        converted_bytes: bytes that devices move inside, where they read or write another format than their own.
    """

    forms: Mapping[str, TensorForms]
    reformats: Sequence[Reformat]
    problems: Sequence[str]
    converted_bytes: int = 0

    @property
    def moved_bytes(self) -> int:
        """All bytes that are moved because types, formats or devices differ: what the choice makes least."""
        return self.converted_bytes + sum(one.size for one in self.reformats)


NO_FORMATS = Formats({}, [], [])
"""Of a network of which parts have no place."""


def choose_formats(network: Network, sides: Sides) -> Formats:
    """Formats of all tensors of a network that was cut into segments.

    The caller of the engine keeps inputs and outputs on `caller_device`, LINEAR unless the tensor's `allowed_formats`
    say otherwise.

    Args:
        network: as it was cut.
        sides: who gives and who takes each tensor.
    """
    forms: dict[str, TensorForms] = {}
    reformats: list[Reformat] = []
    problems: list[str] = []
    converted_bytes = 0
    choices: dict[Hashable, _Choice] = {}
    for tensor in network.tensors:
        is_data = tensor.producer is None or tensor.producer.name in sides.partition.segments
        if not is_data or tensor.location is not TensorLocation.DEVICE:
            continue
        key = sides.key(tensor)
        choice = choices.get(key)
        if choice is None:
            choice = choices[key] = _choice(tensor, sides)
        forms[tensor.name] = choice.forms
        converted_bytes += choice.converted_bytes
        names = sides.taker_names(tensor) if choice.crossings else {}
        for one in choice.crossings:
            taker = names[one.taker.segment, one.taker.dtype]
            cause = f"{sides.giver_name(tensor)} {one.provides}, {taker} {one.requires}"
            if one.copy_bytes is not None:
                source, destination = one.source, one.destination
                reformats.append(Reformat(tensor.name, source, destination, one.copy_bytes, cause, one.rule))
            if one.forbidden:
                problems.append(f"tensor {tensor.name!r}: {cause}, but {one.forbidden}")
    return Formats(forms, reformats, problems, converted_bytes)


@frozen
class _Crossing:
    """One taker of a tensor whose form lies in memory otherwise than the giver's.

    Attributes:
        taker: the taker.
        source, destination: the two forms.
        provides, requires: the two in a sentence.
        copy_bytes: size of the copy; None where the copy is made for an earlier taker.
        rule: id of the reason for the copy.
        forbidden: why no copy may be made; "" where one may.
    """

    taker: FormatSide
    source: str
    destination: str
    provides: str
    requires: str
    copy_bytes: int | None
    rule: str
    forbidden: str


@frozen
class _Choice:
    """What holds for all tensors with one key: `choose_formats` adds their names."""

    forms: TensorForms
    converted_bytes: int
    crossings: Sequence[_Crossing]


def _choice(tensor: Tensor, sides: Sides) -> _Choice:
    giver = sides.giver(tensor)
    takers = sides.takers(tensor, giver)
    choice = choose_forms(giver, takers, functools.partial(sides.size_bytes, tensor))
    taken = list(zip(takers, choice.taken, strict=True))
    given = next((form for taker, form in taken if taker.segment < 0), None)
    inside = sides.types_inside(tensor, giver)
    copied: set[Memory] = set()
    crossings = []
    for taker, form in taken:
        if form.memory == choice.produced.memory:
            continue
        crossings.append(
            _Crossing(
                taker,
                str(choice.produced),
                str(form),
                f"provides {choice.produced.words}",
                f"requires {form.words}",
                None if form.memory in copied else sides.size_bytes(tensor, form),
                sides.rule(giver, taker).id,
                giver.forbids_copy or taker.forbids_copy,
            )
        )
        copied.add(form.memory)
    return _Choice(TensorForms(choice.produced, [*choice.copies, *inside], given), choice.converted_bytes, crossings)
