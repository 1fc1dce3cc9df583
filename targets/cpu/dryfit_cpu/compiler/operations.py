"""How code that is written in LLVM becomes a function that native functions can call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from numba.extending import intrinsic


def operation(result: Any, *kinds: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make `generate(builder, *values) -> value` an operation of these Numba types, callable from native functions.

    Args:
        result: Numba type of the value; void for a generator that returns None.
        kinds: Numba types of the arguments.
    """

    def make(generate: Callable[..., Any]) -> Any:
        def emit(context: Any, builder: Any, _signature: Any, values: Sequence[Any]) -> Any:
            value = generate(builder, *values)
            return context.get_dummy_value() if value is None else value

        def declare(_typing_context: Any, *_arguments: Any) -> Any:
            return result(*kinds), emit

        # Numba reads the number of arguments from the function's signature.
        names = ["typing_context", *(f"argument{index}" for index in range(len(kinds)))]
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        declare.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return intrinsic(declare)

    return make
