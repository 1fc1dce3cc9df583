from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tests.core.cli.test_plugins import dryfit
from tests.core.plugins.packages import install, target_module
from tests.schemas import validate

from dryfit.answers.plugins import PluginsDoctorAnswer
from dryfit.plugins import registry
from dryfit.plugins.discovery import CALIBRATORS, GROUPS, HOOKS, TARGETS

ONLY_FOREIGN = {"DRYFIT_DISABLE_PLUGINS": "dryfit"}
"""Dryfit's own plugins are not tried then; those that are tried have them all the same."""


def findings(folder: Path, *arguments: str, **environment: str) -> list[dict[str, Any]]:
    """What doctor finds of packages that are not dryfit's."""
    done = dryfit(folder, "plugins", "doctor", "--json", *arguments, **{**ONLY_FOREIGN, **environment})
    answer = json.loads(done.stdout)
    validate(answer, PluginsDoctorAnswer.schema())
    assert done.returncode == (1 if answer["findings"] else 0)
    found: list[dict[str, Any]] = answer["findings"]
    return found


def test_sound_plugins_end_with_0(tmp_path: Path) -> None:
    install(tmp_path, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, target_module("acme"))
    done = dryfit(tmp_path, "plugins", "doctor", **ONLY_FOREIGN)
    assert done.stdout.startswith("1 plugins checked: all is well; ")
    assert done.returncode == 0


def test_a_switch_that_names_nothing_is_told_and_ends_with_1(tmp_path: Path) -> None:
    install(tmp_path, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, target_module("acme"))
    done = dryfit(tmp_path, "plugins", "doctor", DRYFIT_DISABLE_PLUGINS="dryfit,acme-npuu")
    assert "DRYFIT_DISABLE_PLUGINS names plugins that are not installed: acme-npuu." in done.stdout
    assert "1 plugins checked: all is well" in done.stdout
    assert done.returncode == 1


ENDING = {
    "import os; os._exit(0)": "it ends the interpreter while it is imported (os._exit(0))",
    "import posix; posix._exit(3)": "the interpreter exited with code 3 while importing it",
    "import ctypes; ctypes.string_at(0)": "the interpreter exited with code -11 while importing it",
    "print('[]', end=''); raise RuntimeError('loud')": "RuntimeError: loud",
    "input()": "EOFError: EOF when reading a line",
    "while True: pass": "its import takes longer than 0.5 s of CPU time, or 3 s",
    "import time; time.sleep(100)": "its import takes longer than 0.5 s of CPU time, or 3 s",
}
"""What a module does when it is imported, and what is reported."""


def test_plugins_that_end_or_stop_their_interpreter_end_nothing_else(tmp_path: Path) -> None:
    for number, text in enumerate(ENDING):
        install(
            tmp_path, f"acme-{number}", {TARGETS: {f"npu-{number}": f"acme_{number}:TARGET"}}, {f"acme_{number}": text}
        )
    install(tmp_path, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, target_module("acme"))
    found = findings(tmp_path, "--timeout", "0.5")
    assert {one["name"]: (one["message"], one["version"]) for one in found} == {
        f"npu-{number}": (message, "1.2") for number, message in enumerate(ENDING.values())
    }
    assert all(one["remedy"] for one in found)


def test_everything_that_a_record_names_is_tried(tmp_path: Path) -> None:
    modules = target_module("acme")
    modules["acme"] = modules["acme"].replace("limits_at=", "kernels_at='acme_kernels:KERNELS', limits_at=")
    install(tmp_path, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, modules)
    [found] = findings(tmp_path)
    assert "found ModuleNotFoundError: No module named 'acme_kernels'" in found["message"]
    assert "target ACME_NPU, kernels_at = 'acme_kernels:KERNELS'" in found["message"]
    assert "allowed" not in found["message"]


def test_every_registering_hook_is_tried(tmp_path: Path) -> None:
    bodies = {
        "register_targets": "[1]",
        "register_layers": "[2]",
        "register_commands": "[__import__('click').Command('check')]",
        "contribute_passes": "1 / 0",
    }
    text = "import dryfit\n" + "".join(
        f"@dryfit.hookimpl\ndef {name}(): return {body}\n" for name, body in bodies.items()
    )
    install(tmp_path, "acme", {HOOKS: {"acme": "acme_hooks"}}, {"acme_hooks": text})
    assert {one["hook"]: one["message"] for one in findings(tmp_path)} == {
        "register_targets": "The entry point must name a target (found int; allowed: a Target record)",
        "register_layers": "The plugin returned the wrong type "
        "(found int; allowed: layer plugins and OnnxOperator records)",
        "register_commands": "The command check is claimed by dryfit and acme 1.2 (acme)",
        "contribute_passes": "ZeroDivisionError: division by zero",
    }


def test_metadata_without_a_version_is_a_finding(tmp_path: Path) -> None:
    modules = target_module("acme")
    install(tmp_path, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, modules, version=None)
    [found] = findings(tmp_path)
    assert (found["message"], found["version"]) == ("the metadata of its package has no version", "")


def test_what_is_switched_off_is_not_tried(tmp_path: Path) -> None:
    install(tmp_path, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, {"acme": "1 / 0"})
    assert findings(tmp_path, DRYFIT_DISABLE_PLUGINS="dryfit,acme") == []


def test_text_has_the_reason_the_remedy_and_the_traceback(tmp_path: Path) -> None:
    install(tmp_path, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, {"acme": "import acme_driver"})
    done = dryfit(tmp_path, "plugins", "doctor", **ONLY_FOREIGN)
    lines = done.stdout.splitlines()
    assert lines[0] == ("acme-npu 1.2 (acme) in dryfit.targets: ModuleNotFoundError: No module named 'acme_driver'")
    assert lines[1] == f"    at {tmp_path / 'acme.py'}:1"
    assert lines[2] == "    Install the package that provides the module acme_driver, or reinstall the package"
    assert lines[3] == "    | Traceback (most recent call last):"
    assert "importlib" not in done.stdout
    assert lines[-1].startswith("1 plugins checked: problems found in 1; ")
    assert done.returncode == 1


def test_a_time_that_is_not_positive_is_a_usage_error(dryfit_command: Any) -> None:
    assert dryfit_command("plugins", "doctor", "--timeout", "0").code == 2


def test_who_loses_a_name_to_dryfit_is_told_once(tmp_path: Path) -> None:
    install(tmp_path, "acme", {CALIBRATORS: {"minmax": "acme:ANY"}}, {"acme": "ANY = 1"})
    others = [one.name for group in GROUPS for one in registry.entries(group) if one.name != "minmax"]
    [finding] = findings(tmp_path, DRYFIT_DISABLE_PLUGINS=",".join(others))
    assert finding["message"].endswith("dryfit's own is used")
    assert finding["remedy"].startswith("Uninstall one, or name its package in")


# What a target declares -----------------------------------------------------------------------------------------------

DECLARING = """
    from dryfit.network.data_types import DataType
    from dryfit.target.arithmetic import Arithmetic
    from dryfit.target.checks import at_least, between, check, each, parameter, quantity
    from dryfit.target.cost import CostEstimate
    from dryfit.target.formats import TensorFormat
    from dryfit.target.fusions import Fusion
    from dryfit.target.limits import LimitTable, rule, rules
    from dryfit.target.memory_pools import MemoryPool
    from dryfit.target.target import Platform, SegmentRules, Target

    KINDS = {{"activation", "convolution", "quantize", "dequantize"}}
    RULES = rules("convolution", rule("convolution.kernel", each("kernel_size_nd", between(1, 7)), source="Acme, 1"))
    FUSIONS = [Fusion("convolution-relu", ["convolution", "activation"])]
    FORMATS = {{DataType.INT8: [TensorFormat("ACME16", [DataType.INT8], channels_vector=16)]}}
    POOLS = [MemoryPool("ACME_SRAM", {{"": 1 << 20}}, "activations", per="segment")]
    ARITHMETIC = {{DataType.INT8: Arithmetic(DataType.INT8, DataType.INT32, "group", "half_up", "documented", "s")}}
    PRECISIONS = [DataType.INT8]
    PLATFORMS = [Platform("one", "one", "Acme One")]
    NEVER = at_least(1000)
    WHERE = ("num_groups", NEVER)

    def estimate(question):
        return CostEstimate(1.0, 0, 0, basis="stated", source="Acme, 2")

    def transfer(question):
        return CostEstimate(1.0, question.bytes_moved, 0, basis="stated", source="Acme, 2")
{text}
    LIMITS = LimitTable("ACME_NPU", RULES, supported_kinds=KINDS)
    TARGET = Target(
        device="ACME_NPU", title="Acme", platforms=PLATFORMS, precisions=PRECISIONS, limits_at="acme:LIMITS",
        fusions_at="acme:FUSIONS", input_formats_at="acme:FORMATS", memory_pools_at="acme:POOLS",
        arithmetic_at="acme:ARITHMETIC", estimate_cost_at="acme:estimate", estimate_transfer_at="acme:transfer",
    )
"""


def found_of(folder: Path, text: str) -> list[dict[str, Any]]:
    """What doctor finds of a sound target after which a line is added to its module."""
    module = dedent(DECLARING.format(text="    LINE"))
    install(folder, "acme", {TARGETS: {"acme-npu": "acme:TARGET"}}, {"acme": module.replace("LINE", dedent(text))})
    return findings(folder)


def test_a_sound_target_that_declares_much_is_well(tmp_path: Path) -> None:
    assert found_of(tmp_path, "") == []


FAILING_LATER = (
    (
        "RULES = rules('convolution', rule('a', each('kernel_size', between(1, 7)), source='s'))",
        "rule acme_",
        "Did you mean 'kernel_size_nd'?",
    ),
    (
        "RULES = rules('convolution', rule('a', parameter('groups', NEVER), source='s', when=parameter(*WHERE)))",
        "rule acme_",
        "'groups'",
    ),
    (
        "RULES = rules('convolution', rule('a', check('x', 't')(lambda q: 1 / 0), source='s'))",
        "rule",
        "ZeroDivision",
    ),
    ("RULES = rules('convolution', rule('a', check('x', 't')(lambda q: 'no'), source='s'))", "rule", "Finding"),
    ("KINDS |= {'convolutoin'}", "limits, supported_kinds, convolutoin", "Did you mean 'convolution'?"),
    ("RULES += rules('poling', rule('a', parameter('name', at_least('')), source='s'))", "rule", "'pooling'"),
    ("KINDS -= {'quantize'}", "limits, quantize", "INT8"),
    ("def estimate(): return None", "estimate_cost", "estimate() takes 0 positional arguments"),
    ("def estimate(question): return 3.5", "estimate_cost", "not float"),
    ("def transfer(question): return question.bytes", "estimate_transfer", "'bytes'"),
    ("FUSIONS = [Fusion('odd', ['convolution', 'activaton?', 'activation'])]", "fusion odd", "'activation'"),
    ("POOLS = [MemoryPool('P', {'': 1}, 'activation')]", "memory pool P", "'activations'"),
    ("PLATFORMS = ['one']", "", "not a Platform"),
    ("PRECISIONS = ['INT8']", "", "not a DataType"),
)
"""Lines after a sound target, the part that is named, and words of the message."""

MISSPELT = (
    ("Target(device='X', title='X', platforms=[], fusion_at='acme:FUSIONS')", "Did you mean 'fusions_at'?"),
    ("MemoryPool('P', {}, 'weights', aligment_bytes=3)", "Did you mean 'alignment_bytes'?"),
    ("rule('a', parameter('name', at_least('')), sorce='s')", "Did you mean 'source'?"),
    ("Arithmetic(DataType.INT8, DataType.INT32, 'group', 'half_op', 'documented', 's')", "Did you mean 'half_up'?"),
)
"""Lines that raise, and words of the message."""


@pytest.fixture(scope="module")
def found_of_each(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[dict[str, Any]]]]:
    """A folder with a package for each such line, which is in its module `acme_N`; and what doctor finds of each."""
    folder = tmp_path_factory.mktemp("declarations")
    for number, text in enumerate((*(text for text, _, _ in FAILING_LATER), *(text for text, _ in MISSPELT))):
        name, device = f"acme_{number}", f"ACME_{number}"
        module = DECLARING.format(text="    LINE").replace("ACME_NPU", device).replace('"acme:', f'"{name}:')
        modules = {name: dedent(module).replace("LINE", text)}
        install(folder, name, {TARGETS: {device: f"{name}:TARGET"}}, modules)
    each: dict[str, list[dict[str, Any]]] = {}
    for one in findings(folder):
        each.setdefault(one["name"], []).append(one)
    return folder, each


@pytest.mark.parametrize("number", range(len(FAILING_LATER)), ids=lambda number: FAILING_LATER[number][0])
def test_a_declaration_that_would_fail_later_is_a_finding(found_of_each: Any, number: int) -> None:
    _, part, words = FAILING_LATER[number]
    [found] = found_of_each[1][f"ACME_{number}"]
    assert found["part"].startswith(part)
    assert words in found["message"]
    assert found["remedy"]


@pytest.mark.parametrize("number", range(len(MISSPELT)), ids=lambda number: MISSPELT[number][0])
def test_an_unknown_word_in_a_declaration_is_told_with_the_closest_and_its_line(
    found_of_each: Any, number: int
) -> None:
    (text, words), module = MISSPELT[number], f"acme_{len(FAILING_LATER) + number}"
    folder, found_of = found_of_each
    [found] = found_of[module.upper()]
    assert words in found["message"]
    line = (folder / f"{module}.py").read_text().splitlines().index(text) + 1
    assert found["place"] == f"{folder / module}.py:{line}"


def test_a_broken_rule_says_where_it_is_declared(tmp_path: Path) -> None:
    text = "RULES = rules('convolution', rule('a', each('kernel_size', between(1, 7)), source='s'))"
    [found] = found_of(tmp_path, text)
    line = (tmp_path / "acme.py").read_text().splitlines().index(text) + 1
    assert found["place"] == f"{tmp_path / 'acme.py'}:{line}"


def test_several_faults_of_one_target_are_told_at_once(tmp_path: Path) -> None:
    found = found_of(tmp_path, "KINDS |= {'x'}\ndef estimate(): return None\nFUSIONS = [Fusion('f', ['a', 'b'])]")
    assert {one["part"] for one in found} == {"limits, supported_kinds, x", "estimate_cost", "fusion f"}


def test_hooks_that_only_answer_are_asked(tmp_path: Path) -> None:
    text = """
    import dryfit
    @dryfit.hookimpl
    def vote_on_placement(layer, verdicts): return "GPU"
    @dryfit.hookimpl
    def claim_quantized_group(group): raise ValueError(group.layer.kind)
    @dryfit.hookimpl
    def observe_build(network, settings): raise AssertionError("observers are left alone")
    """
    install(tmp_path, "acme", {HOOKS: {"acme": "acme_hooks"}}, {"acme_hooks": text})
    told = {one["hook"]: one["message"] for one in findings(tmp_path)}
    assert set(told) == {"vote_on_placement", "claim_quantized_group"}
    assert "found str" in told["vote_on_placement"]
    assert told["claim_quantized_group"] == "ValueError: activation"
