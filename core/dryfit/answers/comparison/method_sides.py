"""A quantized network as each of several quantize methods computes it: engines for this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dryfit.answers.comparison.compare import declared_types
from dryfit.answers.comparison.sides import EngineSide, Feeds
from dryfit.builder.assessment import OperatorRule, operator_rules
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.building import Builder, assess
from dryfit.engine.plan import Plan
from dryfit.engine.resolved_operation import ResolvedOperation
from dryfit.errors import ConfigError
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.network.network import Network
from dryfit.passes.quantized_operators.form_quantized_operators import LeftLayer
from dryfit.plugins.quantize_methods import quantize_method
from dryfit.quantization.methods.method import QuantizeMethod
from dryfit.target.kernels import Array


class MethodSide:
    """An engine in which one method computes the network.

    Args:
        method: the method.
        engine: the engine.
        plan: of the engine.
        left: layers that stay in real numbers.

    Attributes:
        operators: name of each tensor of codes that a quantized operator gives to the rule by which it does.
    """

    def __init__(self, method: QuantizeMethod, engine: EngineSide, plan: Plan, left: Sequence[LeftLayer]) -> None:
        self.method = method
        self.plan = plan
        self.left = left
        self._engine = engine
        rules = {one.layer: one for one in operator_rules(plan.network)}
        self.operators: dict[str, OperatorRule] = {
            tensor.name: rules[layer.name]
            for layer in plan.network.layers
            if isinstance(layer, QuantizedOperator)
            for tensor in layer.outputs
            if tensor.dtype.is_integer
        }

    @property
    def name(self) -> str:
        """The method's."""
        return self.method.name

    def arrays(self, feeds: Feeds) -> dict[str, Array]:
        """Every tensor that the engine stores in one run, as it is stored."""
        return self._engine.arrays(feeds)

    def producers(self, feeds: Feeds) -> dict[str, ResolvedOperation]:
        """Name of each stored tensor to what gives it, in the order in which the engine computes them."""
        operations = self._engine.runner(feeds).operations
        return {tensor.name: one for one in operations for tensor in one.group.outputs}

    def fed(
        self, resolved: ResolvedOperation, feeds: Feeds, own: Mapping[str, Array], others: Mapping[str, Array]
    ) -> Mapping[str, Array] | None:
        """What an operation gives on the tensors of another run; None where that run does not store all of them.

        Args:
            resolved: of this engine.
            feeds: of the run.
            own: every tensor of this engine's run.
            others: every tensor of the other run.
        """
        runner = self._engine.runner(feeds)
        inputs: dict[str, Array] = {}
        for tensor in resolved.group.inputs:
            if tensor.name in runner.known:
                continue
            found = (own if tensor.name in self._engine.fixed else others).get(tensor.name)
            mine = own[tensor.name]
            if found is None or (found.dtype, found.shape) != (mine.dtype, mine.shape):
                return None
            inputs[tensor.name] = found
        if all(array.tobytes() == own[name].tobytes() for name, array in inputs.items()):
            return own
        return runner.run(resolved, inputs)


def method_sides(
    names: Sequence[str], network: Network, config: BuilderConfig, num_threads: int | None = None
) -> list[MethodSide]:
    """The engines of a network by several methods.

    Args:
        names: of the methods.
        network: explicitly quantized. Its own method is set in turn to each of them, and is afterwards what it was;
            layers that have a method themselves keep it.
        config: that the engines are built with, for this machine's processor.
        num_threads: of each engine; as many as there are CPUs for None.

    Raises:
        ConfigError: fewer than two names, or a name twice.
        UnknownNameError: no installed package brings a method.
        PluginError: a method cannot be loaded.
        DryfitError: the network cannot be built.
    """
    if len(names) < 2 or len(set(names)) != len(names):
        raise ConfigError(
            "Two quantize methods or more are compared, each named once", where="--methods", found=", ".join(names)
        )
    methods = [quantize_method(name, where="--methods") for name in names]
    before = network.quantize_method
    try:
        return [_side(method, network, config, num_threads) for method in methods]
    finally:
        network.quantize_method = before


def _side(method: QuantizeMethod, network: Network, config: BuilderConfig, num_threads: int | None) -> MethodSide:
    network.quantize_method = method.name
    left = assess(network, config).left
    plan = Builder().build_plan(network, config)
    engine = EngineSide(method.name, plan, declared_types(network), num_threads)
    return MethodSide(method, engine, plan, left)
