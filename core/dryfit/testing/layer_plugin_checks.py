"""Checks of a layer plugin without an engine: fields, shapes, types, formats, values.

Each function returns the problems as sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dryfit.attrs_classes import frozen
from dryfit.errors import DryfitError
from dryfit.network.data_types import DataType
from dryfit.network.declared_types import WrongTypeError, check_for
from dryfit.network.format_combinations import FormatCombination, arranged, rearranged, stated_combinations
from dryfit.network.layer_plugin import REQUIRED, Fields, LayerPlugin, all_declared_fields, complete_fields
from dryfit.network.layers.plugin import Plugin
from dryfit.network.network import Network
from dryfit.network.plugin_table import register_layer_plugin
from dryfit.network.tensor import Array, TensorSpec
from dryfit.reference.plugin import ConfiguredPlugin

Oracle = Callable[[Fields, Sequence[Array | None]], Sequence[Array]]
Tolerances = Mapping[DataType, float]

_WRONG_VALUES: tuple[Any, ...] = ("no number", 0.5, (("nested",),), b"bytes", True, np.zeros(2, np.float32), 3)


@frozen(eq=False)
class PluginExample:
    """A plugin with valid fields and inputs.

    Attributes:
        plugin: the plugin under test.
        fields: fields as set on a layer.
        inputs: arrays; None for an absent optional input.
    """

    plugin: LayerPlugin
    fields: Fields
    inputs: Sequence[Array | None]

    @property
    def specs(self) -> list[TensorSpec | None]:
        """Specs of the inputs, including contents."""
        return [None if array is None else TensorSpec.of(array) for array in self.inputs]

    def new_layer(self) -> Plugin:
        """Return a layer with these fields, in no network."""
        register_layer_plugin(self.plugin)
        name, version, namespace = self.plugin.key
        return Plugin(
            name="example",
            plugin_name=name,
            plugin_version=version,
            plugin_namespace=namespace,
            fields=dict(self.fields),
        )

    def complete_fields(self) -> Fields:
        """Return the fields with the plugin's defaults."""
        return complete_fields(self.plugin, self.fields, "example")

    def output_specs(self, inputs: Sequence[TensorSpec | None]) -> list[TensorSpec]:
        """Return the output specs that the plugin reports."""
        return list(self.plugin.output_specs(self.complete_fields(), inputs))

    def outputs(self) -> list[Array]:
        """Return the plugin's outputs, checked as in an engine."""
        return ConfiguredPlugin(self.new_layer(), self.specs).run(self.inputs)


def declaration_problems(plugin: LayerPlugin) -> list[str]:
    """Return the fields whose defaults do not have the declared types."""
    problems = []
    for name, field in (all_declared_fields(plugin) or {}).items():
        try:
            check = check_for(field.kind)
            if field.default is not REQUIRED:
                check(field.default)
        except WrongTypeError as error:
            problems.append(f"field {name!r}: its default is {error.found}, not {error.allowed}")
    return problems


def value_problems(found: Sequence[Array], expected: Sequence[Array], tolerances: Tolerances) -> list[str]:
    """Return deviations in number, shape or value of the outputs, relative to the largest magnitude."""
    if len(found) != len(expected):
        return [f"{len(found)} outputs instead of {len(expected)}"]
    problems = []
    for index, (one, other) in enumerate(zip(found, map(np.asarray, expected), strict=True)):
        if one.shape != other.shape:
            problems.append(f"output {index} has the shape {one.shape} instead of {other.shape}")
            continue
        tolerance = tolerances.get(DataType.from_numpy(one.dtype), 0.0)
        wide, wanted = one.astype(np.float64), other.astype(np.float64)
        finite = wanted[np.isfinite(wanted)]
        allowed = tolerance * (float(np.abs(finite).max()) if finite.size else 1.0)
        with np.errstate(invalid="ignore"):
            wrong = ~((wide == wanted) | (np.abs(wide - wanted) <= allowed) | (np.isnan(wide) & np.isnan(wanted)))
        if wrong.any():
            place = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(wrong)))
            problems.append(
                f"output {index} is {np.atleast_1d(one)[place]} at {place} instead of {np.atleast_1d(wanted)[place]}"
                f" (allowed error {allowed:g}); {int(wrong.sum())} of {wrong.size} elements are wrong"
            )
    return problems


def dynamic_shape_problems(example: PluginExample) -> list[str]:
    """Return where `output_specs` with dynamic extents contradicts the result with known extents."""
    known = example.output_specs([_without_value(spec) for spec in example.specs])
    problems = []
    for opened in _opened(example.specs):
        where = f"with inputs {', '.join('absent' if spec is None else str(spec.shape) for spec in opened)}"
        try:
            specs = example.output_specs(opened)
        except Exception as error:  # noqa: BLE001  a plugin may raise anything
            problems.append(f"{where}: {type(error).__name__}: {error}")
            continue
        if [(spec.rank, spec.dtype) for spec in specs] != [(spec.rank, spec.dtype) for spec in known]:
            problems.append(f"{where}: outputs {_written(specs)}, of another rank or type than {_written(known)}")
        elif any(
            extent not in (-1, static)
            for one, other in zip(specs, known, strict=True)
            for extent, static in zip(one.shape, other.shape, strict=True)
        ):
            problems.append(f"{where}: outputs {_written(specs)}, but {_written(known)} when the extents are known")
    return problems


def _opened(specs: Sequence[TensorSpec | None]) -> Iterator[list[TensorSpec | None]]:
    """The specs with every extent left open, and with each one alone."""
    bare = [_without_value(spec) for spec in specs]
    yield [None if spec is None else attrs.evolve(spec, shape=(-1,) * spec.rank) for spec in bare]
    for index, spec in enumerate(bare):
        for axis in range(spec.rank if spec is not None else 0):
            assert spec is not None  # noqa: S101  it has axes
            shape = (*spec.shape[:axis], -1, *spec.shape[axis + 1 :])
            yield [*bare[:index], attrs.evolve(spec, shape=shape), *bare[index + 1 :]]


def _without_value(spec: TensorSpec | None) -> TensorSpec | None:
    return None if spec is None else TensorSpec(spec.shape, spec.dtype)


def _written(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(f"{spec.dtype.text} {spec.shape}" for spec in specs)


def input_problems(example: PluginExample) -> list[str]:
    """Return the inputs that `enqueue` modifies."""
    copies = [None if array is None else array.copy() for array in example.inputs]
    fields = example.complete_fields()
    configured = example.plugin.configure(fields, example.specs, example.output_specs(example.specs))
    example.plugin.enqueue(configured, copies)
    return [
        f"input {index} was changed"
        for index, (copy, array) in enumerate(zip(copies, example.inputs, strict=True))
        if copy is not None and array is not None and copy.tobytes() != array.tobytes()
    ]


def repetition_problems(example: PluginExample) -> list[str]:
    """Return outputs that differ between runs, in one configured layer and in two."""
    configured = ConfiguredPlugin(example.new_layer(), example.specs)
    runs = [configured.run(example.inputs), configured.run(example.inputs), example.outputs()]
    contents = [[array.tobytes() for array in run] for run in runs]
    return [] if contents[0] == contents[1] == contents[2] else ["two runs with the same inputs differ"]


def wrong_fields(example: PluginExample, stated: Sequence[Fields]) -> list[Fields]:
    """Return the fields that must be rejected: those of the kit, and those excluded by the declaration."""
    declared = all_declared_fields(example.plugin)
    found = list(stated)
    if declared is None:
        return found
    found.append({**example.fields, "no_such_field": 1})
    for name, field in declared.items():
        if field.default is REQUIRED:
            found.append({key: value for key, value in example.fields.items() if key != name})
        wrong = next((value for value in _WRONG_VALUES if not _is_of(field.kind, value)), None)
        if wrong is not None:
            found.append({**example.fields, name: wrong})
    return found


def _is_of(kind: Any, value: Any) -> bool:
    try:
        check_for(kind)(value)
    except WrongTypeError:
        return False
    return True


def refusal_problems(example: PluginExample, fields: Fields) -> list[str]:
    """Return invalid fields that a network accepts, or rejects without a message."""
    network = Network()
    try:
        add_example(network, attrs.evolve(example, fields=fields))
    except DryfitError as error:
        is_told = " " in error.message.strip()
        return [] if is_told else [f"fields {dict(fields)} are refused without a sentence: {error}"]
    except Exception as error:  # noqa: BLE001  whatever escapes is the finding
        return [f"fields {dict(fields)}: {type(error).__name__}: {error} instead of an error that names the layer"]
    return [f"fields {dict(fields)} are taken"]


def add_example(network: Network, example: PluginExample) -> Plugin:
    """Add an example's layer, with one network input per input."""
    tensors = [
        None if array is None else network.add_input(f"input{index}", DataType.from_numpy(array.dtype), array.shape)
        for index, array in enumerate(example.inputs)
    ]
    return network.add_plugin(tensors, example.plugin, example.fields)


def combinations(example: PluginExample) -> list[FormatCombination] | None:
    """Return the combinations that the plugin declares for the example; None if it declares none."""
    return stated_combinations(example.plugin, example.complete_fields(), example.specs)


def combination_problems(
    example: PluginExample, combination: FormatCombination, oracle: Oracle, tolerances: Tolerances
) -> list[str]:
    """Return the problems when the plugin receives inputs in a combination that it declares."""
    pairs = [*zip(example.inputs, combination.inputs, strict=True)]
    inputs = [None if array is None else arranged(array, dtype, layout) for array, (dtype, layout) in pairs]
    plain = [None if array is None else array.astype(dtype.numpy) for array, (dtype, _) in pairs]
    given = attrs.evolve(example, inputs=plain)
    fields = given.complete_fields()
    specs = given.output_specs(given.specs)
    if tuple(spec.dtype for spec in specs) != combination.output_types:
        return [f"{combination}: `output_specs` says {_written(specs)}"]
    layouts = [layout for _, layout in combination.outputs]
    found = given.plugin.enqueue(given.plugin.configure(fields, given.specs, specs), inputs)
    outputs = [rearranged(one, spec.shape, layout) for one, spec, layout in zip(found, specs, layouts, strict=True)]
    wrong = [
        f"{combination}: output {index} is {array.dtype}"
        for index, (array, dtype) in enumerate(zip(outputs, combination.output_types, strict=True))
        if array.dtype != dtype.numpy
    ]
    return wrong or [f"{combination}: {one}" for one in value_problems(outputs, oracle(fields, plain), tolerances)]
