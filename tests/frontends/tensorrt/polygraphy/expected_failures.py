"""Which of Polygraphy's own tests do not pass through dryfit's modules, and why.

A test is named as `folder.file.Class.function[parameters]`; `*` stands for any text.
"""

from __future__ import annotations

import enum
import fnmatch
from collections.abc import Iterator

import attrs


class Cause(enum.Enum):
    """What keeps a test from passing."""

    GPU = "needs a GPU, or a compiled library of NVIDIA's"
    VERSION = "is for other versions than those that are installed"
    BOARD = "is for a machine without a DLA"
    CLOCK = "compares two measured times of this machine; it may pass"
    MISSING = "needs what dryfit does not have"


@attrs.frozen
class Expected:
    """Tests that do not pass, and why.

    Attributes:
        tests: pattern of the names.
        cause: kind of the reason.
        reason: what exactly is missing.
        api: TensorRT versions where they do not pass; () for all.
        polygraphy: beginning of the versions of Polygraphy where they do not pass; "" for all.
    """

    tests: str
    cause: Cause
    reason: str
    api: tuple[str, ...] = ()
    polygraphy: str = ""


_LOADER = "backend.trt.test_loader"
_RUNNER = "backend.trt.test_runner.TestTrtRunner"
_CONFIG = "backend.trt.test_config"

_TORCH_CUDA = "allocates with torch on a CUDA device"
_REMOVED = "TensorRT 11 removed it"
_OLDER = "Polygraphy 0.49 does not know it"
_NEWER = "Polygraphy 0.53 changed it after these tests"

EXPECTED = (
    Expected("util.test_array", Cause.GPU, f"{_TORCH_CUDA}, in the head of the file"),
    Expected(f"{_RUNNER}.test_torch_tensors[[]cuda-*", Cause.GPU, _TORCH_CUDA),
    Expected(f"{_RUNNER}.test_torch_tensors[[]cpu-False]", Cause.GPU, "expects the outputs on torch's CUDA device"),
    Expected(f"{_LOADER}.TestLoadRuntime.test_load_lean_runtime", Cause.GPU, "opens libnvinfer_lean.so"),
    Expected("cuda.test_cuda.TestDeviceBuffer.test_copy_*_overhead", Cause.CLOCK, "a copy against a memcpy"),
    Expected(
        "backend.trt.test_util.test_str_from_config[[]dla]",
        Cause.BOARD,
        "expects the pools and the DLA core that TensorRT reports without a DLA",
        api=("8.6", "10.16"),
    ),
    # Versions of Polygraphy: the tests are of 0.49.27.
    Expected("util.test_serde.TestDecoder.test_names_correct", Cause.VERSION, "lists the classes of 0.49.27"),
    *(
        Expected(
            f"backend.trt.test_util.test_all_layer_types_mapped[[]LayerType.{kind}]",
            Cause.VERSION,
            _OLDER,
            ("10.16", "11.1"),
            "0.49",
        )
        for kind in ("ROTARY_EMBEDDING", "KV_CACHE_UPDATE", "MOE", "DIST_COLLECTIVE")
    ),
    Expected(
        "common.test_datatype.TestDataType.test_all_tensorrt_types_supported[[]DataType.E8M0]",
        Cause.VERSION,
        _OLDER,
        ("10.16", "11.1"),
        "0.49",
    ),
    Expected("common.test_datatype.TestDataType.test_*[[]float8e8m0]", Cause.VERSION, _NEWER, (), "0.53"),
    Expected(
        f"{_CONFIG}.TestCreateConfig.test_flags[[]True-allow_gpu_fallback-*",
        Cause.VERSION,
        "Polygraphy 0.53 sets the flag only together with use_dla",
        ("8.6", "10.16"),
        "0.53",
    ),
    # What these tests use without asking for the version, and TensorRT 11 does not have.
    *(
        Expected(
            f"backend.trt.test_algorithm_selector.{name}.*",
            Cause.VERSION,
            f"algorithm selectors: {_REMOVED}",
            ("11.1",),
        )
        for name in ("TestReplayer", "TestRecorder")
    ),
    Expected("backend.trt.test_calibrator", Cause.VERSION, f"calibrators: {_REMOVED}", ("11.1",)),
    Expected(_CONFIG, Cause.VERSION, f"BuilderFlag.FP16: {_REMOVED}", ("11.1",)),
    Expected("backend.trt.test_util", Cause.VERSION, f"PreviewFeature.PROFILE_SHARING_0806: {_REMOVED}", ("11.1",)),
    Expected(
        f"{_LOADER}.TestLoadPlugins.test_can_load_libnvinfer_plugins",
        Cause.VERSION,
        f"IPluginRegistry.plugin_creator_list: {_REMOVED}",
        ("11.1",),
    ),
    Expected(f"{_LOADER}.TestPostprocessNetwork.test_modify_network", Cause.VERSION, _REMOVED, ("11.1",)),
    Expected(f"{_LOADER}.TestSetLayerPrecisions.test_basic", Cause.VERSION, _REMOVED, ("11.1",)),
    Expected(f"{_LOADER}.TestEngineFromNetwork.test_can_build_with_calibrator*", Cause.VERSION, _REMOVED, ("11.1",)),
)
"""In the order of their causes."""


def expected_failures(api: str, polygraphy: str) -> Iterator[Expected]:
    """Return what does not pass with these versions."""
    for one in EXPECTED:
        if (not one.api or api in one.api) and polygraphy.startswith(one.polygraphy):
            yield one


def reason_of(test: str, api: str, polygraphy: str) -> Expected | None:
    """Return why a test does not pass; None if it has to pass."""
    found = (one for one in expected_failures(api, polygraphy) if fnmatch.fnmatchcase(test, one.tests))
    return next(found, None)
