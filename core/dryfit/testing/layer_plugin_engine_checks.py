"""Whether a layer plugin works in engines: saved and loaded, and in several threads. On the CPU, which takes all types.

Each function returns what is wrong, as sentences.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np

from dryfit.building import Builder
from dryfit.engine.engine import Engine
from dryfit.network.layer_plugin import Array, Fields, LayerPlugin
from dryfit.network.layers.plugin import Plugin
from dryfit.plugins import registry
from dryfit.plugins.discovery import LAYERS, owner_of
from dryfit.testing.layer_plugin_checks import PluginExample, add_example

_THREADS = 2
_RUNS = 4


def built(example: PluginExample) -> Engine:
    """An engine of the example's layer alone, on the CPU."""
    builder = Builder()
    network, config = builder.create_network(), builder.create_builder_config()
    config.default_device_type = registry.host().device
    for tensor in add_example(network, example).outputs:
        network.mark_output(tensor)
    return builder.build_engine(network, config)


def engine_file_problems(example: PluginExample, path: Path) -> list[str]:
    """What an engine file loses: fields, their types, or numbers of the outputs.

    Args:
        example: the layer.
        path: of the file that is written.
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
    """Fields that are not the same, to the type and the bit."""
    if wanted.keys() != found.keys():
        return [f"fields {sorted(found)} instead of {sorted(wanted)}"]
    return [
        f"field {name!r} is {found[name]!r} instead of {wanted[name]!r}"
        for name in wanted
        if not is_same_field(wanted[name], found[name])
    ]


def is_same_field(one: Any, other: Any) -> bool:
    """Whether two values of fields are the same, to the type and the bit."""
    if type(one) is tuple and type(other) is tuple:
        return len(one) == len(other) and all(map(is_same_field, one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    return type(one) is type(other) and repr(one) == repr(other)  # as text nan is nan, and -0.0 is not 0.0


def thread_problems(example: PluginExample) -> list[str]:
    """Whether contexts in several threads compute what one does alone."""
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
    """Whether an installed package names the plugin, by its own name, and it can be loaded."""
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
