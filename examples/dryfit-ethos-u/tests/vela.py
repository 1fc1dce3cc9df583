"""Arm's compiler Vela as the oracle: which operators of a model run on the NPU, and in how many cycles."""

from __future__ import annotations

import functools
import io
from contextlib import redirect_stdout
from importlib import resources
from importlib.metadata import version

import attrs


@attrs.frozen
class VelaOperator:
    """An operator of the model as Vela placed it.

    Attributes:
        index: position in the model.
        kind: TFLite's name.
        runs_on_npu: whether no part of it is left to the CPU.
        cycles: estimated cycles of the commands made of it.
    """

    index: int
    kind: str
    runs_on_npu: bool
    cycles: float


@attrs.frozen
class VelaAnswer:
    operators: dict[int, VelaOperator]
    total_cycles: float
    tables: dict
    report: object


def settings(accelerator: str, system: str, mode: str) -> tuple[str, str]:
    """Return (accelerator, configuration) as Vela's compiler core takes them."""
    family, macs = accelerator.rsplit("-", 1)
    cores = 2 if (family, macs) == ("ethos-u65", "512") else 1
    ini = (resources.files("ethosu") / "config_files" / "Arm" / "vela.ini").read_text()
    head = f"[architecture]\nmacs={int(macs) // cores}\ncores={cores}\n"
    head += f"[vela]\nsystem_config_name={system}\nmemory_mode_name={mode}\n"
    return "".join(word.capitalize() for word in family.split("-")), head + ini


def compiled(model: bytes, accelerator="ethos-u55-128", system="Ethos_U55_High_End_Embedded", mode="Shared_Sram"):
    from ethosu import regor
    from ethosu.vela import vela

    family, config = settings(accelerator, system, mode)
    import inspect

    options = options_text()
    found = regor.compile(family, model, "TFLITE", config, options=options, verbose=True)
    return found


@functools.cache
def options_text():
    from ethosu.vela import vela
    import inspect

    return vela.get_compiler_config(
        False,
        False,
        False,
        False,
        "Performance",
        0x7FFFFFFF,
        False,
        False,
        False,
        False,
        False,
        True,
        True,
        "tflite",
        False,
        False,
        False,
        False,
        False,
        "COP1",
        False,
        16,
        "HillClimb",
        10.0,
        None,
    )
