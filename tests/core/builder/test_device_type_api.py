"""The table from C++ names to names here is complete, and every name in it exists."""

import re
from pathlib import Path

import pytest

import dryfit

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "device-type-api.md"

# Every function of TensorRT that the DLA chapter of its developer guide names, with its interface.
NAMED_BY_THE_CHAPTER = {
    "IBuilderConfig": [
        "setDeviceType",
        "getDeviceType",
        "canRunOnDLA",
        "setDefaultDeviceType",
        "getDefaultDeviceType",
        "isDeviceTypeSet",
        "resetDeviceType",
        "allowGPUFallback",
        "reset",
        "setFlag",
        "setDLACore",
        "setEngineCapability",
        "setMemoryPoolLimit",
        "setMaxWorkspaceSize",
    ],
    "IBuilder": [
        "createInferBuilder",
        "createBuilderConfig",
        "createNetworkV2",
        "getMaxDLABatchSize",
        "getNbDLACores",
        "setMaxBatchSize",
    ],
    "IRuntime": ["getNbDLACores", "setDLACore", "getDLACore"],
    "IExecutionContext": ["getStrides"],
    "INetworkDefinition": ["addInput", "addConvolution", "markOutput", "getOutput", "setStride"],
}

TEXT = PAGE.read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## `?(\w+)`?.*?\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))
HERE = sorted(set(re.findall(r"^\|[^|]*\| `([\w.]+)` \|", TEXT, re.MULTILINE)))


@pytest.mark.parametrize("interface", NAMED_BY_THE_CHAPTER)
def test_every_function_of_the_chapter_has_a_row(interface):
    named = re.findall(r"^\| `(\w+)\(", SECTIONS[interface], re.MULTILINE)
    assert sorted(named) == sorted(NAMED_BY_THE_CHAPTER[interface])


@pytest.mark.parametrize("name", HERE)
def test_every_name_in_the_table_exists(name):
    owner, *members = name.split(".")
    found = getattr(dryfit, owner)
    for member in members:
        assert hasattr(found, member), name
        found = getattr(found, member)


def test_the_table_has_names():
    assert len(HERE) >= 35
