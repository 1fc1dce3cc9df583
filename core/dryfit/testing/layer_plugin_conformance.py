"""The conformance kit of layer plugins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from dryfit.network.data_types import DataType
from dryfit.network.format_combinations import FormatCombination
from dryfit.network.layer_plugin import Array, Fields, LayerPlugin
from dryfit.network.plugin_table import check_layer_plugin
from dryfit.testing import layer_plugin_checks, layer_plugin_engine_checks
from dryfit.testing.kit import Cases, ConformanceKit, declared, require_none
from dryfit.testing.layer_plugin_checks import PluginExample, Tolerances

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
    """Tests that every layer plugin passes.

    A subclass states the plugin, examples of fields and inputs, and `oracle`: another way to compute the outputs, by
    which the plugin's numbers are judged. It must not use the plugin.

    Attributes:
        plugin: under test.
        examples: (fields, inputs) that it takes; together they should reach all that it can do.
        wrong_fields: fields that it has to refuse with the first example's inputs, beside those of which the kit knows
            that its declaration excludes them.
        tolerances: output type to the largest error, as a fraction of the output's largest magnitude; 0 for types that
            are not named. FLOAT: sums in another order. HALF and BF16: 11 and 8 bits, rounded once or twice.
        is_installed: whether a package brings it; False skips the test of its entry point.

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
        """The outputs by another way than the plugin's, as precise as it can be.

        Args:
            fields: complete, with defaults.
            inputs: those of an example, or the same in other types.
        """
        del fields, inputs
        pytest.fail("the kit has no `oracle`: say how the outputs are computed without the plugin", pytrace=False)

    # The record ---------------------------------------------------------------------------------------------------

    def test_it_has_a_name_and_examples(self) -> None:
        """Name, version, namespace; at least one example."""
        check_layer_plugin(self.plugin)
        require_none([] if self.examples else ["the kit has no `examples`: there is nothing to judge the plugin by"])

    def test_its_fields_are_declared_with_defaults_of_their_kinds(self) -> None:
        """`declared_fields`."""
        declared(self.plugin.declared_fields, "declared field: the plugin takes whatever a layer says")
        require_none(layer_plugin_checks.declaration_problems(self.plugin))

    def test_a_packages_entry_point_names_it(self) -> None:
        """So that engines and ONNX models find it."""
        if not self.is_installed:
            pytest.skip("the kit says that no package brings the plugin")
        require_none(layer_plugin_engine_checks.installation_problems(self.plugin))

    def test_wrong_fields_are_refused_in_words(self, wrong: tuple[PluginExample, Fields] | None) -> None:
        """A field that does not exist, is missing, or is of another kind; and the kit's `wrong_fields`."""
        require_none(layer_plugin_checks.refusal_problems(*declared(wrong, "field that would be wrong")))

    # Shapes and numbers -------------------------------------------------------------------------------------------

    def test_it_computes_what_the_oracle_says(
        self, example: PluginExample | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Numbers, and shapes and types as `output_specs` says them."""
        given = _example(example)
        found = given.outputs()
        _put_away(self.plugin, monkeypatch)
        expected = self.oracle(given.complete_fields(), given.inputs)
        require_none(layer_plugin_checks.value_problems(found, expected, self.tolerances))

    def test_its_shapes_hold_when_extents_are_open(self, example: PluginExample | None) -> None:
        """`output_specs` with dynamic extents, all and one by one."""
        require_none(layer_plugin_checks.dynamic_shape_problems(_example(example)))

    def test_it_leaves_its_inputs_as_they_are(self, example: PluginExample | None) -> None:
        """`enqueue` writes to no input."""
        require_none(layer_plugin_checks.input_problems(_example(example)))

    def test_it_computes_the_same_again(self, example: PluginExample | None) -> None:
        """To the bit, in one configured layer and in another."""
        require_none(layer_plugin_checks.repetition_problems(_example(example)))

    def test_it_computes_in_each_combination_that_it_names(self, example: PluginExample | None) -> None:
        """`format_combinations`: inputs in these types and formats give outputs in these types."""
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
        """Saved and loaded: the same fields to the type and bit, the same outputs."""
        require_none(layer_plugin_engine_checks.engine_file_problems(_example(example), tmp_path / "plugin.engine"))

    def test_contexts_in_two_threads_compute_what_one_does(self, example: PluginExample | None) -> None:
        """`enqueue` keeps nothing from one call to the next."""
        require_none(layer_plugin_engine_checks.thread_problems(_example(example)))


def _example(example: PluginExample | None) -> PluginExample:
    return declared(example, "example")  # type: ignore[no-any-return]


def _put_away(plugin: LayerPlugin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whoever uses the plugin from now on fail, until the test is over."""

    def refuse(*inputs: Any, **fields: Any) -> Any:
        del inputs, fields
        pytest.fail("the oracle uses the plugin that it is to judge", pytrace=False)

    monkeypatch.setattr(plugin, "enqueue", refuse)
    monkeypatch.setattr(plugin, "_function", refuse, raising=False)
