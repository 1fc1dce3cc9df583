"""What the tensors inside an engine are in one run: what debugging and comparisons look at."""

from __future__ import annotations

from collections.abc import Mapping

from dryfit.engine.binding import BoundEngine
from dryfit.engine.engine import Engine
from dryfit.engine.execution_context import available_threads
from dryfit.engine.resolved_operation import resolve_operations
from dryfit.target.kernels import Array


def tensor_values(engine: Engine, feeds: Mapping[str, Array], *, num_threads: int | None = None) -> dict[str, Array]:
    """Run an engine once, and copy every tensor that its operations store, right after it was written.

    The engine runs as it always does: what is fused stays so, and what exists only inside an operation has no value
    here. Tensors whose shape depends on data are left out, except outputs.

    Args:
        engine: is not changed.
        feeds: input name to array, of the shapes and types that the engine takes.
        num_threads: how many threads run it; as many as there are CPUs for None.

    Returns:
        Name in the engine's network to a copy of the contents: integers where the tensor is quantized.

    Raises:
        ExecutionError: the shapes do not fit the engine, or memory is short.
    """
    plan = engine.plan
    operations = resolve_operations(plan)
    shapes = {name: array.shape for name, array in feeds.items()}
    bound = BoundEngine(plan, operations, shapes, num_threads or available_threads())
    written = {one.group.name: [tensor.name for tensor in one.group.outputs] for one in operations}
    values: dict[str, Array] = {name: array.copy() for name, array in feeds.items()}

    def keep(step: str, _seconds: float) -> None:
        for name in written.get(step, ()):
            array = bound.stored(name)
            if array is not None:
                values[name] = array.copy()

    values.update({name: array.copy() for name, array in bound.run(feeds, keep).items()})
    return values
