"""The modules have exactly TensorRT's members and values, as the tables say, and the tables say what the sources do."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import dryfit
from dryfit_tensorrt.behaviour.forwarding import PARAMETERS, RENAMED
from dryfit_tensorrt.surface.origins import Origin
from dryfit_tensorrt.surface.tables import MAJORS, classes, enumerations
from dryfit_tensorrt.surface.unsupported import REASONS, reason

NESTED = {"Severity"}
"""Enumerations that stand inside a class, not in the module."""


def module(major: int) -> Any:
    return importlib.import_module(f"dryfit_tensorrt.trt{major}")


@pytest.mark.parametrize("major", MAJORS)
def test_every_enumeration_has_its_members_and_values(major: int) -> None:
    trt = module(major)
    for name, members in enumerations(major).items():
        made = trt.Logger.Severity if name in NESTED else getattr(trt, name)
        assert {key: int(value) for key, value in made.__members__.items()} == dict(members), name


@pytest.mark.parametrize("major", MAJORS)
def test_every_class_has_every_member_and_no_other_public_one(major: int) -> None:
    trt = module(major)
    for name, members in classes(major).items():
        made = getattr(trt, name)
        assert [member for member in members if not hasattr(made, member)] == [], name


@pytest.mark.parametrize("major", MAJORS)
def test_a_member_that_a_version_lacks_is_absent(major: int) -> None:
    trt = module(major)
    for name, members in classes(major).items():
        others = {member for other in MAJORS for member in classes(other).get(name, {})} - set(members) - {"__init__"}
        beyond = getattr(getattr(trt, name), "_beyond_tables", frozenset())
        assert [member for member in others - beyond if hasattr(getattr(trt, name), member)] == [], name
    absent = {name for other in MAJORS for name in classes(other)} - set(classes(major))
    assert [name for name in absent if hasattr(trt, name)] == []


def test_members_print_and_compare_as_those_of_the_bindings() -> None:
    trt = module(10)
    assert str(trt.LayerType.CONVOLUTION) == "LayerType.CONVOLUTION"
    assert trt.LayerType(0) is trt.LayerType.CONVOLUTION
    assert trt.LayerType.CONVOLUTION != 0
    assert trt.LayerType.CONVOLUTION != trt.ActivationType.RELU
    assert 1 << int(trt.BuilderFlag.GPU_FALLBACK) == 8
    assert trt.Logger.ERROR < trt.Logger.INFO
    assert trt.TensorFormat.CHW32 == 5
    assert trt.float16 is trt.DataType.HALF
    assert (trt.float32.itemsize, trt.int4.itemsize, trt.e8m0.itemsize) == (4, 0.5, None)


def test_numbers_differ_between_versions() -> None:
    assert int(module(8).LayerType.CAST) == 47
    assert int(module(10).LayerType.CAST) == 1
    assert module(8).BuilderFlag(4).name == "STRICT_TYPES"
    assert module(10).BuilderFlag(4).name == module(11).BuilderFlag(3 + 1).name == "REFIT"


@pytest.mark.shared
def test_the_tables_equal_the_gathered_facts(shared: Path) -> None:
    text = (shared / "reference" / "tensorrt-api.md").read_text()
    index = text[text.index("# Appendix A.") :]
    rows = re.findall(r"^\| `(\w+)` \(([\d, ]+)\) \| (.*) \|$", index, re.MULTILINE)
    assert len(rows) > 100
    for name, levels, body in rows:
        for major in MAJORS:
            listed = str(major) in levels.split(", ")
            assert (name in classes(major)) is listed
            if listed:
                assert set(classes(major)[name]) == _index_members(body, major), (name, major)
    values = text[text.index("## 1.9 Enums") : text.index("### `BuilderFlag` semantics")]
    rows = re.findall(r"^\| `(\w+)` \| [ESU] \| (`.*) \|$", values, re.MULTILINE)
    assert len(rows) > 50
    for name, body in rows:
        if not body.startswith("11.2"):
            for column, major in enumerate(MAJORS):
                assert dict(enumerations(major).get(name, {})) == _index_values(body, column), (name, major)


def _index_members(body: str, major: int) -> set[str]:
    found = set()
    for levels, items in re.findall(r"\*\*([\w+]+)\*\*: (.*?)(?=<br>|$)", body):
        if levels == "all" or str(major) in levels.split("+"):
            found |= {re.match(r"\w+", item.strip("` "))[0] for item in items.split(" · ")}  # type: ignore[index]
    return found


def _index_values(body: str, column: int) -> dict[str, int]:
    found = {}
    for name, value in re.findall(r"`(\w+)` (\S+)", body):
        own = value.split("/")[column] if "/" in value else value
        if own != "–":  # noqa: RUF001  the dash of the source
            found[name] = int(own)
    return found


@pytest.mark.parametrize("major", MAJORS)
def test_what_is_not_supported_raises_an_error_that_says_why(major: int) -> None:
    trt = module(major)
    api = trt.Builder._api
    refused = [place for place, origin in api.origins.items() if origin is Origin.REFUSED]
    assert refused
    for owner, member in refused:
        made = inspect.getattr_static(getattr(trt, owner), member)
        call = made.fget if isinstance(made, property) else made
        with pytest.raises(NotImplementedError, match=re.escape(f".{member} is not supported")) as raised:
            call(object.__new__(getattr(trt, owner)))
        assert reason(owner, member) in str(raised.value)


def test_no_reason_is_given_for_what_works() -> None:
    origins = [module(major).Builder._api.origins for major in MAJORS]
    refused = {place for found in origins for place, origin in found.items() if origin is Origin.REFUSED}
    assert {key for key in REASONS if "." in key} <= {f"{owner}.{member}" for owner, member in refused}
    assert {key for key in REASONS if "." not in key} <= {owner for owner, _ in refused}


@pytest.mark.parametrize("major", MAJORS)
def test_a_forwarded_method_of_networks_takes_the_parameters_of_the_binding(major: int) -> None:
    api = module(major).Builder._api
    for name, member in classes(major)["INetworkDefinition"].items():
        if member.is_method and api.origins["INetworkDefinition", name] is Origin.FORWARDED:
            own = inspect.signature(getattr(dryfit.Network, RENAMED.get(("INetworkDefinition", name), name))).parameters
            asked = {PARAMETERS.get(one.name, one.name) for overload in member.overloads for one in overload}
            assert asked <= set(own), name
