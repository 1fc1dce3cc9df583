"""What is found of a layer alone is kept for equal layers, and only that: whatever a rule or a kernel looks at."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryfit.builder.config.builder_config import BuilderConfig, BuilderFlag
from dryfit.builder.kernels import choice
from dryfit.errors import BuildError
from dryfit.network.data_types import DataType
from dryfit.network.equal_layers import LayerKeys, StandIns
from dryfit.network.layers.activation import ActivationType
from dryfit.network.layers.elementwise import ElementWiseOperation
from dryfit.network.network import Network
from dryfit.network.tensor import TensorSpec
from dryfit.plugins import registry
from dryfit.target.checks import check
from dryfit.target.group import LayerGroup
from dryfit.target.kernels import Kernel, kernel
from dryfit.target.limits import Finding, LimitTable, Question, rule, rules, shared_answers
from dryfit.testing.example_layers import EXAMPLES, add_example

_SUM = ElementWiseOperation.SUM
_OPTIONS: dict[str, Any] = {}


def _chain(length: int) -> Network:
    """Activations, of which every second is a sigmoid."""
    network = Network("chain")
    x = network.add_input("x", DataType.FLOAT, (1, 4, 8, 8))
    for index in range(length):
        x = network.add_activation(x, (ActivationType.RELU, ActivationType.SIGMOID)[index % 2]).get_output(0)
    network.mark_output(x)
    return network


def _question(layer: Any, precision: DataType = DataType.HALF) -> Question:
    return Question(layer, precision, "BOX", "box", "box", (), options=_OPTIONS)


def _table(look: Callable[[Question], Finding | None]) -> LimitTable:
    made = check("what it looks at", "the layer is as the rule wants it")(look)
    return LimitTable("BOX", rules((), rule("looks", made, source="a test")))


def test_a_rule_is_evaluated_once_for_equal_layers() -> None:
    asked: list[str] = []

    def look(question: Question) -> Finding | None:
        asked.append(question.layer.kind)
        return Finding(str(question.spec(question.inputs[0]).shape), "another shape")

    counts = []
    for length in (20, 200):
        asked.clear()
        verdict = _table(look).repeated()
        verdicts = [verdict(_question(layer)) for layer in _chain(length)]
        counts.append(len(asked))
        assert [one.violations[0].actual for one in verdicts] == ["(1, 4, 8, 8)"] * length
        assert len({one.layer for one in verdicts}) == length
    assert counts[0] == counts[1] < 10


def test_a_rule_is_evaluated_once_for_equal_layers_of_several_networks() -> None:
    asked: list[str] = []

    def look(question: Question) -> Finding | None:
        asked.append(question.layer.kind)
        return Finding(str(question.options["allowed"]), "another option")

    table, counts, found = _table(look), [], []
    with shared_answers():
        for allowed in ("one", "one", "another"):
            options = {"allowed": frozenset({allowed})}
            verdict = table.repeated()
            questions = [attrs.evolve(_question(layer), options=options) for layer in _chain(6)]
            found.append([verdict(one) for one in questions])
            counts.append(len(asked))
    assert counts == [4, 4, 8]  # those at the ends differ from those between
    assert [{one.violations[0].actual for one in verdicts} for verdicts in found] == [
        {"frozenset({'one'})"},
        {"frozenset({'one'})"},
        {"frozenset({'another'})"},
    ]
    table.repeated()(questions[0])
    assert len(asked) == 9  # nothing is kept behind the context


@pytest.mark.parametrize(
    "look",
    [
        lambda question: question.layer.name,
        lambda question: question.layer.index,
        lambda question: question.inputs[0].name,
        lambda question: question.inputs[0].producer and question.inputs[0].producer.name,
        lambda question: len(question.outputs[0].consumers),
        lambda question: len(question.layer.network.layers),
        lambda question: question.layer.network.name + question.layer.network.layers[-1].name,
        lambda question: getattr(question.layer, "name", "nothing"),
        lambda question: hasattr(question.outputs[0], "consumers") and question.outputs[0].consumers[0][0].name,
        lambda question: vars(question.layer).get("name", "") or repr(question.layer),
        lambda question: question.is_put_here(question.layer),
        lambda question: question.inputs[0].producer is not None and question.inputs[0].producer.alpha,
    ],
)
def test_a_rule_that_looks_beyond_the_layer_is_asked_about_each(look: Callable[[Question], Any]) -> None:
    def found(question: Question) -> Finding | None:
        try:
            return Finding(repr(look(question)), "something else")
        except IndexError:
            return None

    network, table = _chain(7), _table(found)
    network.layers[3].alpha = 0.5  # type: ignore[attr-defined]
    verdict = table.repeated()
    assert [verdict(_question(layer)) for layer in network] == [table.evaluate(_question(layer)) for layer in network]


def _convolutions(count: int) -> Network:
    """Convolutions that are equal but for their weights."""
    network = Network("convolutions")
    x = network.add_input("x", DataType.FLOAT, (1, 2, 4, 4))
    for index in range(count):
        kernel = np.full((2, 2, 1, 1), index + 1, np.float32)
        x = network.add_convolution_nd(x, 2, (1, 1), kernel, np.zeros(2, np.float32)).get_output(0)
    network.mark_output(x)
    return network


def test_a_rule_that_looks_at_shapes_of_weights_is_evaluated_once_for_layers_with_other_weights() -> None:
    asked: list[str] = []

    def look(question: Question) -> Finding | None:
        asked.append(question.layer.kind)
        layer: Any = question.layer
        assert isinstance(layer.kernel, np.ndarray)
        assert len(layer.kernel.shape) == layer.kernel.ndim
        return Finding(f"{layer.kernel.shape} {layer.kernel.dtype} {layer.kernel.nbytes} {layer.bias.size}", "others")

    counts = []
    for length in (5, 20):
        asked.clear()
        verdict = _table(look).repeated()
        verdicts = [verdict(_question(layer)) for layer in _convolutions(length)]
        counts.append(len(asked))
        assert [one.violations[0].actual for one in verdicts] == ["(2, 2, 1, 1) float32 16 2"] * length
    assert counts[0] == counts[1] <= 3


@pytest.mark.parametrize(
    "look",
    [
        lambda kernel: kernel[0, 0, 0, 0],
        lambda kernel: kernel.sum(),
        np.max,
        lambda kernel: np.asarray(kernel).tolist(),
        lambda kernel: np.add(kernel, 1).tolist(),
        lambda kernel: (kernel + 1).tolist(),
        lambda kernel: (1 - kernel).tolist(),
        lambda kernel: bool((kernel == 1).all()),
        lambda kernel: bool(np.any(kernel > 2)),
        lambda kernel: [float(one) for one in kernel.flat],
        lambda kernel: [one.tolist() for one in kernel],
        lambda kernel: kernel.tobytes(),
        lambda kernel: memoryview(kernel).tobytes(),
        str,
        lambda kernel: f"{kernel}",
        lambda kernel: 2.0 in kernel,
        lambda kernel: getattr(kernel, "max", lambda: "nothing")(),
        lambda kernel: copy.copy(kernel).tolist(),
        lambda kernel: np.array_equal(kernel, np.full((2, 2, 1, 1), 2, np.float32)),
    ],
)
def test_a_rule_that_looks_at_the_elements_of_weights_is_asked_about_each(look: Callable[[Any], Any]) -> None:
    def found(question: Question) -> Finding | None:
        layer: Any = question.layer
        return Finding(repr(look(layer.kernel)), "something else")

    network, table = _convolutions(4), _table(found)
    verdict = table.repeated()
    answers = [verdict(_question(layer)) for layer in network]
    assert answers == [table.evaluate(_question(layer)) for layer in network]
    assert not any("failed" in one.violations[0].message for one in answers)


def test_a_rule_that_hides_its_failure_is_still_asked_about_each() -> None:
    def found(question: Question) -> Finding | None:
        try:
            name = question.layer.name
        except Exception:  # noqa: BLE001  what a careless rule does
            return None
        return Finding(name, "another name")

    network, verdict = _chain(5), _table(found).repeated()
    assert [verdict(_question(layer)).violations[0].actual for layer in network] == [one.name for one in network]


def test_a_rule_that_fails_is_told_with_the_layer_itself() -> None:
    def found(question: Question) -> Finding | None:
        raise RuntimeError(question.layer.name)

    network, table = _chain(4), _table(found)
    verdict = table.repeated()
    for layer in network:
        assert verdict(_question(layer)) == table.evaluate(_question(layer))
        assert layer.name in verdict(_question(layer)).violations[0].message


def test_layers_that_differ_in_anything_a_rule_may_read_have_other_keys() -> None:
    keys = LayerKeys()

    def key(change: Callable[[Network, Any], Any] = lambda network, layer: None) -> Any:
        network = _chain(3)
        change(network, network.layers[2])
        return keys.of((network.layers[2],))

    plain = key()
    assert plain == key()
    changes: list[Callable[[Network, Any], Any]] = [
        lambda network, layer: setattr(layer, "alpha", 0.5),
        lambda network, layer: setattr(layer, "alpha", -0.0),
        lambda network, layer: setattr(layer, "precision", DataType.HALF),
        lambda network, layer: layer.set_output_type(0, DataType.HALF),
        lambda network, layer: setattr(layer, "quantize_method", "none"),
        lambda network, layer: setattr(network, "quantize_method", "none"),
        lambda network, layer: setattr(layer.outputs[0], "dynamic_range", (-1.0, 1.0)),
        lambda network, layer: setattr(layer.inputs[0], "dynamic_range", (-1.0, 1.0)),
        lambda network, layer: setattr(layer.outputs[0], "allowed_formats", "LINEAR"),
        lambda network, layer: network.mark_output(layer.inputs[0]),
        lambda network, layer: network.unmark_output(layer.outputs[0]),
        lambda network, layer: layer.set_input(0, network.inputs[0]),
        lambda network, layer: setattr(network.inputs[0], "shape", (2, 4, 8, 8)),
        lambda network, layer: layer.outputs[0].set_dimension_name(0, "batch"),
    ]
    found = [key(change) for change in changes]
    assert len({plain, *found}) == len(changes) + 1


def test_an_input_that_is_read_twice_is_told_from_two_inputs() -> None:
    keys, network = LayerKeys(), _chain(2)
    first, second = (layer.outputs[0] for layer in network.layers)
    twice = network.add_elementwise(second, second, _SUM)
    both = network.add_elementwise(first, second, _SUM)
    assert keys.of((twice,)) != keys.of((both,))
    stand_in = StandIns((twice,)).layers[0]
    assert stand_in.inputs[0] is stand_in.inputs[1]


def _drawn_network(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Network:
    """Layers of a few kinds, each several times, with ranges and outputs here and there."""
    network = Network("drawn")
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x = network.add_input("x", DataType.FLOAT, (1, draw(st.sampled_from([3, 8])), 8, 8))
    kinds = draw(st.lists(st.sampled_from(sorted(EXAMPLES)), min_size=1, max_size=4, unique=True))
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=4, max_size=16)):
        before = len(network)
        layer = add_example(kind, network, x, rng)
        if layer is None:  # a layer that only finds out later that it does not fit
            network.remove_layers(network.layers[before:])
        output = layer.outputs[0] if layer is not None and layer.outputs else x
        if draw(st.booleans()) and output.dtype is DataType.FLOAT:
            output.dynamic_range = draw(st.sampled_from([(-1.0, 1.0), (0.0, 6.0)]))
        if draw(st.booleans()):
            network.mark_output(output)
        x = output if output.dtype is DataType.FLOAT and len(output.shape) == 4 and draw(st.booleans()) else x
    network.mark_output(x)
    return network


@given(st.data())
@pytest.mark.parametrize("device", ["DLA", "GPU"])
def test_verdicts_are_those_of_each_layer_alone(device: str, data: st.DataObject) -> None:
    network = _drawn_network(data.draw)
    config = BuilderConfig()
    config.default_device_type = device
    for flag in data.draw(st.lists(st.sampled_from([BuilderFlag.FP16, BuilderFlag.INT8]), unique=True)):
        config.set_flag(flag)
    if network.layers and data.draw(st.booleans()):
        config.set_device_type(network.layers[0], device)
    target = registry.target(device)
    question, verdict = config.questions(target), target.repeated_verdicts()
    for layer in network:
        assert verdict(question(layer)) == target.verdict(question(layer))


def _groups(network: Network) -> tuple[list[LayerGroup], dict[str, TensorSpec]]:
    return [LayerGroup((layer,)) for layer in network], {tensor.name: tensor.spec for tensor in network.tensors}


def _host_with(monkeypatch: pytest.MonkeyPatch, accepts: Callable[[LayerGroup, Any], bool]) -> Kernel:
    """A kernel of activations that is the only one there is."""

    @kernel("test.activation", kinds="activation", data_types="fp32", accepts=accepts, fuses=["activation"])
    def made(binding: Any) -> Callable[[], None]:
        raise NotImplementedError(binding)

    monkeypatch.setattr(choice, "kernels_for", lambda device: [made])
    return made


def test_a_kernel_is_asked_once_about_equal_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def accepts(group: LayerGroup, specs: Any) -> bool:
        asked.append(group.main.kind)
        return all(specs[tensor.name].shape[1] == 4 for tensor in (*group.inputs, *group.outputs))

    made, counts = _host_with(monkeypatch, accepts), []
    for length in (20, 200):
        asked.clear()
        groups, specs = _groups(_chain(length))
        kernels = choice.KernelChoice()
        assert all(kernels.candidates("GPU", group, specs) == [made] for group in groups)
        for one, other in itertools.pairwise(groups):
            assert kernels.taking([made], one, other.main, specs) == [made]
        counts.append(len(asked))
    assert counts[0] == counts[1] < 20


@pytest.mark.parametrize(
    "look",
    [
        lambda group: group.main.name,
        lambda group: group.name,
        lambda group: str(len(group.main.outputs[0].consumers)),
        lambda group: str(group.main.index),
    ],
)
def test_a_kernel_that_looks_beyond_its_group_is_asked_about_each(
    monkeypatch: pytest.MonkeyPatch, look: Callable[[LayerGroup], str]
) -> None:
    network = _chain(6)
    refused = look(LayerGroup((network.layers[5],)))
    made = _host_with(monkeypatch, lambda group, specs: look(group) != refused)
    groups, specs = _groups(network)
    kernels = choice.KernelChoice()
    for group in groups:
        if made.refusal(group, specs) is None:
            assert kernels.candidates("GPU", group, specs) == [made]
        else:
            with pytest.raises(BuildError):
                kernels.candidates("GPU", group, specs)
    assert any(made.refusal(group, specs) for group in groups)


@given(st.data())
def test_kernels_are_those_of_each_layer_alone(data: st.DataObject) -> None:
    network = _drawn_network(data.draw)
    specs = {tensor.name: tensor.spec for tensor in network.tensors}
    kernels = choice.KernelChoice()
    for layer in network:
        if layer.kind == "constant":
            continue
        group = LayerGroup((layer,))
        able = [one for one in choice.kernels_for("GPU") if one.refusal(group, specs) is None]
        found = kernels.candidates("GPU", group, specs)
        assert found == [one for one in able if one.priority == able[0].priority]
        for reader, _ in layer.outputs[0].consumers if layer.outputs else ():
            taking = [one for one in found if choice.takes(one, group, reader, specs)]
            assert kernels.taking(found, group, reader, specs) == taking
