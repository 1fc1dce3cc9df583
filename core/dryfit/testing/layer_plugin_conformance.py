"""The conformance kit of layer plugins, and the checks of engines with plugin layers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.network.data_types import DataType
from dryfit.network.format_combinations import FormatCombination
from dryfit.network.layer_plugin import Fields, LayerPlugin
from dryfit.network.layers.plugin import Plugin
from dryfit.network.plugin_table import check_layer_plugin
from dryfit.network.tensor import Array
from dryfit.plugins import registry
from dryfit.plugins.discovery import LAYERS, owner_of
from dryfit.testing import layer_plugin_checks
from dryfit.testing.kit import Cases, ConformanceKit, declared, require_none
from dryfit.testing.layer_plugin_checks import PluginExample, Tolerances, add_example

_THREADS = 2
_RUNS = 4


def built(example: PluginExample) -> Engine:
    """Return an engine of the example's layer alone, on the CPU."""
    builder = Builder()
    network, config = builder.create_network(), builder.create_builder_config()
    config.default_device_type = registry.host().device
    for tensor in add_example(network, example).outputs:
        network.mark_output(tensor)
    return builder.build_engine(network, config)


def engine_file_problems(example: PluginExample, path: Path) -> list[str]:
    """Return what an engine file loses: fields, their types, or output values.

    Args:
        example: the example layer.
        path: path of the file to write.
    """
    engine = built(example)
    engine.save(path)
    loaded = Engine.load(path)
    wanted = example.plugin.serialized_fields(example.complete_fields())
    (layer,) = [layer for layer in loaded.plan.network.layers if isinstance(layer, Plugin)]
    problems = field_problems({name: value for name, value in wanted.items() if value is not None}, layer.fields)
    if loaded.serialize() != path.read_bytes():
        problems.append("the loaded engine is saved as another file")
    if not problems and _run(loaded, example) != _run(engine, example):
        problems.append("the loaded engine computes something else: serialized_fields leaves out what is needed")
    return problems


def field_problems(wanted: Fields, found: Fields) -> list[str]:
    """Return the fields that are not identical, in type and bits."""
    if wanted.keys() != found.keys():
        return [f"fields {sorted(found)} instead of {sorted(wanted)}"]
    return [
        f"field {name!r} is {found[name]!r} instead of {wanted[name]!r}"
        for name in wanted
        if not is_same_field(wanted[name], found[name])
    ]


def is_same_field(one: Any, other: Any) -> bool:
    """Return whether two field values are identical, in type and bits."""
    if type(one) is tuple and type(other) is tuple:
        return len(one) == len(other) and all(map(is_same_field, one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    return type(one) is type(other) and repr(one) == repr(other)  # as text nan is nan, and -0.0 is not 0.0


def thread_problems(example: PluginExample) -> list[str]:
    """Return where contexts in several threads differ from a single context."""
    engine = built(example)
    alone = _run(engine, example)
    with ThreadPoolExecutor(_THREADS) as pool:
        runs = list(pool.map(lambda _: _run(engine, example), range(_RUNS)))
    return (
        [] if all(run == alone for run in runs) else ["runs in two threads at once give other outputs than one alone"]
    )


def _run(engine: Engine, example: PluginExample) -> dict[str, bytes]:
    feeds: dict[str, Array] = {
        f"input{index}": array for index, array in enumerate(example.inputs) if array is not None
    }
    outputs = engine.create_execution_context().run(feeds)
    return {name: np.ascontiguousarray(array).tobytes() for name, array in outputs.items()}


def installation_problems(plugin: LayerPlugin) -> list[str]:
    """Return why the plugin cannot be loaded by its name from an installed package."""
    name, _, namespace = plugin.key
    wanted = f"{namespace}::{name}" if namespace else name
    entries = [entry for entry in registry.entries(LAYERS) if entry.name == wanted]
    if not entries:
        return [f"no installed package has an entry point {wanted!r} in the group {LAYERS!r}"]
    keys = {str(owner_of(entry)): _key(entry) for entry in entries}
    if plugin.key in keys.values():
        return []
    return [f"the entry point {owner} brings {key} instead of {plugin.key}" for owner, key in keys.items()]


def _key(entry: EntryPoint) -> Any:
    """The key of the plugin that an entry point names; what it names instead, where it is none."""
    try:
        loaded = entry.load()
    except Exception as error:  # noqa: BLE001  a module may raise anything
        return f"{type(error).__name__}: {error}"
    return getattr(loaded() if isinstance(loaded, type) else loaded, "key", type(loaded).__name__)


Example = tuple[Fields, Sequence[Array | None]]
"""(fields, inputs), with None for an optional input that is absent."""


def _examples(kit: LayerPluginConformance) -> Cases:
    return [
        (str(index), PluginExample(kit.plugin, fields, inputs)) for index, (fields, inputs) in enumerate(kit.examples)
    ]


def _wrong_fields(kit: LayerPluginConformance) -> Cases:
    if not kit.examples:
        return []
    example = PluginExample(kit.plugin, *kit.examples[0])
    found = layer_plugin_checks.wrong_fields(example, kit.wrong_fields)
    return [(str(index), (example, fields)) for index, fields in enumerate(found)]


class LayerPluginConformance(ConformanceKit):
    """Tests for every layer plugin.

    A subclass provides the plugin, examples of fields and inputs, and `oracle`: an independent computation of the
    outputs with which the plugin's results are compared. It must not use the plugin.

    Attributes:
        plugin: the plugin under test.
        examples: valid (fields, inputs); together they should cover all features of the plugin.
        wrong_fields: fields that the plugin must reject with the first example's inputs, in addition to those that its
            declaration excludes.
        tolerances: output type to the maximum error, as a fraction of the output's largest magnitude; 0 for other
            types. FP32: sums in another order. FP16 and BF16: 11 and 8 bits, rounded once or twice.
        is_installed: whether a package provides the plugin; False skips the test of its entry point.

    Example:
        >>> from dryfit.testing import LayerPluginConformance
        >>> class TestSwish(LayerPluginConformance):
        ...     plugin = swish
        ...     examples = [({"beta": 2.0}, [np.linspace(-3, 3, 7, dtype=np.float32)])]
        ...
        ...     def oracle(self, fields, inputs):
        ...         return [np.array([v / (1 + math.exp(-fields["beta"] * v)) for v in inputs[0]])]
    """

    plugin: ClassVar[LayerPlugin]
    examples: ClassVar[Sequence[Example]] = ()
    wrong_fields: ClassVar[Sequence[Fields]] = ()
    tolerances: ClassVar[Tolerances] = {
        DataType.DOUBLE: 1e-12,
        DataType.FLOAT: 1e-5,
        DataType.HALF: 2e-3,
        DataType.BF16: 1.6e-2,
    }
    is_installed: ClassVar[bool] = True
    cases = {"example": _examples, "wrong": _wrong_fields}

    def oracle(self, fields: Fields, inputs: Sequence[Array | None]) -> Sequence[Array]:
        """Return the outputs, computed independently of the plugin and as precisely as possible.

        Args:
            fields: the complete fields, including defaults.
            inputs: inputs of an example, or the same values in other types.
        """
        del fields, inputs
        pytest.fail(
            "the kit has no `oracle`: give a function that computes the outputs without the plugin", pytrace=False
        )

    # The record ---------------------------------------------------------------------------------------------------

    def test_it_has_a_name_and_examples(self) -> None:
        """The plugin has a name, version and namespace, and at least one example."""
        check_layer_plugin(self.plugin)
        require_none([] if self.examples else ["the kit has no `examples`: there is nothing to judge the plugin by"])

    def test_its_fields_are_declared_with_defaults_of_their_kinds(self) -> None:
        """The defaults in `declared_fields` have the declared types."""
        declared(self.plugin.declared_fields, "declared field: the plugin takes whatever a layer says")
        require_none(layer_plugin_checks.declaration_problems(self.plugin))

    def test_a_packages_entry_point_names_it(self) -> None:
        """An entry point exists, so that engines and ONNX models find the plugin."""
        if not self.is_installed:
            pytest.skip("the kit says that no package brings the plugin")
        require_none(installation_problems(self.plugin))

    def test_wrong_fields_are_refused_in_words(self, wrong: tuple[PluginExample, Fields] | None) -> None:
        """Unknown, missing and mistyped fields, and `wrong_fields`, are rejected with a message."""
        require_none(layer_plugin_checks.refusal_problems(*declared(wrong, "field that would be wrong")))

    # Shapes and numbers -------------------------------------------------------------------------------------------

    def test_it_computes_what_the_oracle_says(
        self, example: PluginExample | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Values match the oracle; shapes and types match `output_specs`."""
        given = _example(example)
        found = given.outputs()
        _put_away(self.plugin, monkeypatch)
        expected = self.oracle(given.complete_fields(), given.inputs)
        require_none(layer_plugin_checks.value_problems(found, expected, self.tolerances))

    def test_its_shapes_hold_when_extents_are_open(self, example: PluginExample | None) -> None:
        """`output_specs` is consistent with dynamic extents, all at once and one by one."""
        require_none(layer_plugin_checks.dynamic_shape_problems(_example(example)))

    def test_it_leaves_its_inputs_as_they_are(self, example: PluginExample | None) -> None:
        """`enqueue` does not modify its inputs."""
        require_none(layer_plugin_checks.input_problems(_example(example)))

    def test_it_computes_the_same_again(self, example: PluginExample | None) -> None:
        """Results are bit-identical in one configured layer and in another."""
        require_none(layer_plugin_checks.repetition_problems(_example(example)))

    def test_it_computes_in_each_combination_that_it_names(self, example: PluginExample | None) -> None:
        """Inputs in each of the `format_combinations` give outputs in the declared types."""
        given = _example(example)
        stated: list[FormatCombination] = declared(
            layer_plugin_checks.combinations(given), "format combination: the plugin takes what the network has"
        )
        require_none(
            [
                problem
                for one in stated
                for problem in layer_plugin_checks.combination_problems(given, one, self.oracle, self.tolerances)
            ]
        )

    # Engines ------------------------------------------------------------------------------------------------------

    def test_its_fields_survive_an_engine_file(self, example: PluginExample | None, tmp_path: Path) -> None:
        """A saved and loaded engine has identical fields, in type and bits, and identical outputs."""
        require_none(engine_file_problems(_example(example), tmp_path / "plugin.engine"))

    def test_contexts_in_two_threads_compute_what_one_does(self, example: PluginExample | None) -> None:
        """`enqueue` keeps no state between calls."""
        require_none(thread_problems(_example(example)))


def _example(example: PluginExample | None) -> PluginExample:
    return declared(example, "example")  # type: ignore[no-any-return]


def _put_away(plugin: LayerPlugin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whoever uses the plugin from now on fail, until the test is over."""

    def refuse(*inputs: Any, **fields: Any) -> Any:
        del inputs, fields
        pytest.fail("the oracle uses the plugin that it is to judge", pytrace=False)

    monkeypatch.setattr(plugin, "enqueue", refuse)
    monkeypatch.setattr(plugin, "_function", refuse, raising=False)
