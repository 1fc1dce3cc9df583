import subprocess
import sys

import attrs
import pytest

from dryfit.errors import ConfigError, PluginError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.plugins import registry
from dryfit.quantization.rounding import RoundingMode
from dryfit.target.arithmetic import Arithmetic
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.target import Platform, SegmentRules, Target, inherited

WITH_ARRAYS = {
    "kernels",
    "roofline",
    "group",
    "binding",
    "kernel_declaration",
    "kernel_formats",
    "layer_steps",
    "memory",
    "packing",
    "sparsity",
    "tactics",
}
"""The modules that kernels need and that speak of arrays; no record imports them."""

ACME = Target(
    device="ACME",
    title="Acme",
    platforms=[
        Platform("first", "a", "First", aliases=["one"]),
        Platform("second", "b", "Second", software=((2, 0), (3, 0))),
    ],
    software_versions=[(1, 0), (2, 0), (3, 0), (4, 0)],
)


def test_what_a_target_leaves_out_is_empty():
    assert ACME.limits is None
    assert (ACME.input_formats, ACME.output_formats, ACME.memory_pools) == ({}, {}, ())
    assert (ACME.arithmetic, ACME.kernels, ACME.create_schedule) == ({}, (), None)
    assert (ACME.fusions, ACME.compile_segment, ACME.load_segment, ACME.estimate_cost) == (None,) * 4
    assert ACME.segment_rules == SegmentRules()


def test_what_a_target_leaves_out_is_inherited_from_the_host():
    host = registry.target("CPU")
    found = inherited(ACME, host)
    assert (found.precisions, found.arithmetic) == (host.precisions, host.arithmetic)
    assert (found.input_formats, found.output_formats) == (host.input_formats, host.output_formats)
    assert (found.device, found.platforms, found.limits, found.memory_pools) == ("ACME", ACME.platforms, None, ())
    assert found.create_schedule is None
    own = inherited(
        attrs.evolve(ACME, precisions=[DataType.HALF], arithmetic_at="dryfit_gpu.arithmetic:ARITHMETIC"), host
    )
    assert (own.precisions, own.arithmetic_at) == ([DataType.HALF], "dryfit_gpu.arithmetic:ARITHMETIC")


@pytest.mark.parametrize("field", ["compile_segment_at", "load_segment_at"])
def test_a_compiler_without_a_loader_and_the_reverse_are_refused(field):
    with pytest.raises(
        PluginError, match="A target must have both a segment compiler and a loader, or neither"
    ) as caught:
        attrs.evolve(ACME, **{field: "acme:function"})
    assert (caught.value.where, caught.value.allowed) == ("target ACME", "both or neither")


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("no_such_module:LIMITS", "ModuleNotFoundError"),
        ("dryfit_dla.limits:NOTHING", "AttributeError"),
        ("dryfit_dla.limits", "AttributeError"),
        ("acme_exits:LIMITS", "SystemExit: 3"),
        ("acme_syntax:LIMITS", "SyntaxError"),
    ],
)
def test_a_declaration_that_cannot_be_imported_names_device_field_and_place(place, found, tmp_path, monkeypatch):
    (tmp_path / "acme_exits.py").write_text("raise SystemExit(3)")
    (tmp_path / "acme_syntax.py").write_text("LIMITS = (")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginError) as caught:
        attrs.evolve(ACME, limits_at=place).limits  # noqa: B018  the property imports
    assert caught.value.where == f"target ACME, limits_at = {place!r}"
    assert caught.value.found.startswith(found)
    assert "dryfit plugins doctor" in caught.value.remedy


@pytest.mark.parametrize(
    ("field", "place", "found", "allowed"),
    [
        ("limits_at", "math:pi", "float", "a LimitTable"),
        ("kernels_at", "math:pi", "float", "a sequence of Kernel"),
        ("kernels_at", "dryfit_dla.formats:POOLS", "MemoryPool among them", "a sequence of Kernel"),
        ("memory_pools_at", "string:digits", "str", "a sequence of MemoryPool"),
        ("input_formats_at", "dryfit_cpu.arithmetic:ARITHMETIC", "Arithmetic", "DataType to sequences of TensorFormat"),
        ("output_formats_at", "http:HTTPStatus", "EnumType", "DataType to sequences of TensorFormat"),
        ("arithmetic_at", "os:environ", "the key '", "a mapping from DataType to Arithmetic"),
        ("fusions_at", "string:digits", "str", "a sequence of Fusion"),
        ("sparsity_at", "math:pi", "float", "a Sparsity"),
        ("estimate_cost_at", "math:pi", "float", "a function"),
    ],
)
def test_a_declaration_of_another_type_is_told_with_what_is_allowed(field, place, found, allowed):
    with pytest.raises(PluginError) as caught:
        getattr(attrs.evolve(ACME, **{field: place}), field.removesuffix("_at"))
    assert caught.value.where == f"target ACME, {field} = {place!r}"
    assert caught.value.found.startswith(found)
    assert allowed in caught.value.allowed


def test_declarations_are_imported_when_they_are_used():
    made = Target("ACME", "Acme", [Platform("one", "one", "One")], memory_pools_at="dryfit_dla.formats:POOLS")
    assert [pool.name for pool in made.memory_pools] == ["DLA_MANAGED_SRAM", "DLA_LOCAL_DRAM", "DLA_GLOBAL_DRAM"]


def test_a_platform_is_found_by_name_and_alias_in_any_case():
    assert ACME.platform(None).name == "first"
    assert ACME.platform("ONE").name == "first"
    assert ACME.platform("Second").name == "second"
    with pytest.raises(UnknownNameError, match="ACME platform: 'third'"):
        ACME.platform("third")


def test_software_is_bounded_by_the_platform():
    assert ACME.software(None, ACME.platform("first")) == (4, 0)
    assert ACME.software(None, ACME.platform("second")) == (3, 0)
    assert ACME.software("2.5", ACME.platform("second")) == (2, 5)
    assert ACME.software("3", ACME.platform("second")) == (3,)
    for version in ("1.0", "4.0"):
        with pytest.raises(ConfigError, match="no rules for this software version") as error:
            ACME.software(version, ACME.platform("second"))
        assert error.value.allowed == "2.0, 3.0"
    with pytest.raises(ConfigError, match="numbers with dots"):
        ACME.software("3.x", ACME.platform("first"))


def test_a_device_without_versions_takes_any():
    made = Target("ACME", "Acme", [Platform("one", "one", "One")])
    assert made.software(None, made.platforms[0]) == ()
    assert made.software("7.1", made.platforms[0]) == (7, 1)


def test_formats_and_pools_are_found_by_name():
    assert registry.target("DLA").format("chw16").name == "CHW16"
    assert registry.target("DLA").format("DLA_HWC4").channel_counts == (1, 3, 4)
    assert registry.target("DLA").memory_pool("dla_local_dram").holds == "activations"
    with pytest.raises(UnknownNameError, match="DLA tensor format: 'CHW8'"):
        registry.target("DLA").format("CHW8")
    with pytest.raises(UnknownNameError, match="GPU memory pool: 'SRAM'"):
        registry.target("GPU").memory_pool("SRAM")


def test_segments_are_limited_from_a_version_on():
    made = SegmentRules(max_segments={(2, 0): 8, (3, 0): 16})
    assert [made.segment_limit(version) for version in ((1, 0), (2, 0), (2, 9), (3, 1))] == [None, 8, 8, 16]
    assert SegmentRules().segment_limit((1, 0)) is None


def test_a_pool_without_rules_takes_any_size():
    pool = MemoryPool("SCRATCH", {"a": 5, "": 7}, holds="workspace")
    assert (pool.default_for("a"), pool.default_for("b")) == (5, 7)
    pool.check_limit(3)
    with pytest.raises(ConfigError) as error:
        pool.check_limit(-1)
    assert error.value.allowed == "at least 0 bytes"


def test_a_rounding_mode_may_change_with_the_software():
    made = Arithmetic(
        DataType.INT8,
        DataType.INT32,
        "group",
        RoundingMode.HALF_TO_EVEN,
        "documented",
        "s",
        {(2,): RoundingMode.HALF_UP, (3,): RoundingMode.HALF_TO_EVEN},
    )
    modes = [made.rounding_for(version) for version in ((1, 0), (2, 5), (3, 0), ())]
    assert [mode.value for mode in modes] == ["half_up", "half_up", "half_to_even", "half_to_even"]


def test_the_records_of_targets_import_neither_numpy_nor_numba():
    code = (
        "import sys, pkgutil, importlib, dryfit.target; "
        f"names = {{m.name for m in pkgutil.iter_modules(dryfit.target.__path__)}} - {WITH_ARRAYS!r}; "
        "[importlib.import_module('dryfit.target.' + name) for name in names]; "
        "import dryfit_cpu, dryfit_gpu, dryfit_dla, dryfit.plugins.plugin_registry; "
        "assert len(names) >= 8; "
        "print(sorted({'numpy', 'numba', 'llvmlite', 'onnx'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
