"""Arm's compiler Vela as the oracle: which operators of a model run on the NPU, and in how many cycles.

Models are compiled in this process by Vela's own entry, one after another. Where Vela itself crashes, a child process
does, and the layer counts as one without a verdict.
"""

from __future__ import annotations

import faulthandler
import functools
import os
import pickle
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import attrs
import pytest

CONFIGURATIONS = {
    "u55": ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    "u65": ("Ethos_U65_High_End", "Dedicated_Sram_384KB"),
    "u85": ("Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"),
}
"""Family to the system configuration and memory mode of the target's default platform of it."""


@attrs.frozen
class VelaAnswer:
    """What Vela made of a model.

    Attributes:
        on_cpu: positions of the operators that are left to the CPU.
        cycles: estimated cycles of one inference.
        failure: why Vela gave no verdict; "" where it did.
    """

    on_cpu: frozenset[int]
    cycles: int = 0
    failure: str = ""


def regor() -> Any:
    """Return Vela's compiler core, or skip the test."""
    pytest.importorskip("ethosu.vela", reason="ethos-u-vela is not installed: pip install ethos-u-vela==5.2.0")
    from ethosu import regor as core

    return core


@functools.cache
def _settings(accelerator: str) -> tuple[str, str, str]:
    """(family, configuration, compiler options) as Vela's command line gives them to the core."""
    from ethosu.vela import vela

    family, _, macs = accelerator.partition("-")
    system, mode = CONFIGURATIONS[family]
    cores = 2 if accelerator == "u65-512" else 1
    config = f"[architecture]\nmacs={int(macs) // cores}\ncores={cores}\n"
    config += f"[vela]\nsystem_config_name={system}\nmemory_mode_name={mode}\n"
    config += (resources.files("ethosu") / "config_files" / "Arm" / "vela.ini").read_text()
    arena = 384 << 10 if mode.startswith("Dedicated") else (1 << 32 if family == "u55" else 1 << 40)
    flags = [False] * 4
    rest = [False] * 6
    options = vela.get_compiler_config(
        *flags, "Performance", arena, *rest, True, "tflite", *[False] * 5, "COP1", False, 16, "HillClimb", 10.0, None
    )
    return f"Ethos{family.upper()}", config, options


def compiled(model: bytes, accelerator: str) -> VelaAnswer:
    """Return what Vela makes of a model.

    Args:
        model: bytes of a TFLite file whose outputs are named `t0`, `t1`, ... after the tensors.
        accelerator: such as `u55-128`.
    """
    core = regor()
    family, config, options = _settings(accelerator)
    try:
        found = core.compile(family, model, "TFLITE", config, options=options, verbose=False)
    except RuntimeError as error:
        return VelaAnswer(frozenset(), failure=str(error).splitlines()[0])
    return VelaAnswer(_left(model, found.model), int(found.perf_report.totalCycles))


def _left(model: bytes, result: bytes) -> frozenset[int]:
    """Positions of the operators of a model that are still there in Vela's result."""
    from ai_edge_litert import schema_py_generated as schema

    before, after = (schema.ModelT.InitFromPackedBuf(one, 0) for one in (model, result))
    (graph,) = before.subgraphs
    index_of = {graph.tensors[one.outputs[0]].name: index for index, one in enumerate(graph.operators)}
    custom = schema.BuiltinOperator.CUSTOM
    return frozenset(
        index_of[part.tensors[one.outputs[0]].name]
        for part in after.subgraphs
        for one in part.operators
        if after.operatorCodes[one.opcodeIndex].builtinCode != custom
    )


def compiled_apart(models: Mapping[int, bytes], accelerator: str) -> Iterator[tuple[int, VelaAnswer]]:
    """Return what Vela makes of each model; one that takes Vela's process down has no verdict."""
    regor()
    waiting = list(models)
    while waiting:
        answers = _in_child(waiting, models, accelerator)
        yield from answers.items()
        waiting = waiting[len(answers) :]
        if waiting:
            yield waiting.pop(0), VelaAnswer(frozenset(), failure="Vela's process ended with a signal")


def _in_child(names: Sequence[int], models: Mapping[int, bytes], accelerator: str) -> dict[int, VelaAnswer]:
    """The answers of a forked process until its end, expected or not."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "answers"
        place.touch()
        child = os.fork()
        if not child:
            try:
                faulthandler.disable()
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                os.dup2(2, 1)
                with place.open("wb") as file:
                    for name in names:
                        pickle.dump((name, compiled(models[name], accelerator)), file)
                        file.flush()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return dict(_loaded(place))


def _loaded(place: Path) -> Iterable[tuple[int, VelaAnswer]]:
    with place.open("rb") as file:
        while True:
            try:
                yield pickle.load(file)  # noqa: S301  our own child wrote it
            except EOFError:
                return
