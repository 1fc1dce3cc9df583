"""Small networks and random builds for the tests of exports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
from hypothesis import strategies as st
from tests.core.onnx.models import model, numbers

from dryfit.board.board_build import BoardBuild
from dryfit.builder.config.enumerations import BuilderFlag, EngineCapability, ProfilingVerbosity
from dryfit.builder.config.trtexec_spellings import IoFormat
from dryfit.engine.plan import ProfileShapes
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network

VERSIONS = [(8, 2), (8, 4), (8, 5, 10), (8, 6), (8, 6, 12), (10, 0), (10, 3), (10, 16)]
NAMES = ("conv 1", "scope: second=one", "/a/b*c", 'quote"and\\back', "$HOME `x`", "größe\n2")


def small_network(names: tuple[str, ...] = NAMES, batch: int = 2) -> Network:
    """Activations of these names one after the other, on `x: y` of a batch, -1 for any."""
    network = Network("small")
    tensor = network.add_input("x: y", DataType.FLOAT, (batch, 4, 8, 8))
    for name in names:
        layer = network.add_activation(tensor, ActivationType.RELU)
        layer.name = name
        tensor = layer.get_output(0)
    network.mark_output(tensor)
    return network


def network_of(build: BoardBuild) -> Network:
    """The small network, dynamic if the build has profiles."""
    return small_network(batch=-1 if build.profiles else 2)


def small_model() -> onnx.ModelProto:
    """Convolutions, a fully connected node that becomes several layers, a concatenation and a pooling; all named."""
    parsed = model(
        "a = Conv(x, v) b = Relu(a) c = Concat<axis = 1>(a, b) d = MaxPool<kernel_shape = [6, 6]>(c) "
        "e = Flatten(d) y = Gemm(e, w)",
        inputs="float[N,4,6,6] x",
        outputs="float[N,3] y",
        weights={"v": numbers(4, 4, 1, 1), "w": numbers(8, 3)},
    )
    for node in parsed.graph.node:
        node.name = f"block/{node.op_type} {node.output[0]}"
    return parsed


def _flags(draw: Callable[[Any], Any], version: tuple[int, ...]) -> frozenset[BuilderFlag]:
    """Flags that trtexec of this version can be told."""
    known = [BuilderFlag.FP16, BuilderFlag.TF32, BuilderFlag.REFIT, BuilderFlag.SPARSE_WEIGHTS, BuilderFlag.DIRECT_IO]
    known += [BuilderFlag.INT8, BuilderFlag.DISABLE_TIMING_CACHE, BuilderFlag.SAFETY_SCOPE, BuilderFlag.GPU_FALLBACK]
    known += [BuilderFlag.VERSION_COMPATIBLE, BuilderFlag.FP8] if version >= (8, 6) else []
    known += [BuilderFlag.BF16, BuilderFlag.STRIP_PLAN] if version >= (10,) else []
    known += [BuilderFlag.INT4, BuilderFlag.WEIGHT_STREAMING] if version >= (10, 3) else []
    constraints = [BuilderFlag.PREFER_PRECISION_CONSTRAINTS, BuilderFlag.OBEY_PRECISION_CONSTRAINTS]
    chosen = draw(st.sets(st.sampled_from(known)))
    if BuilderFlag.INT8 in chosen:  # trtexec takes one of both
        chosen.discard(BuilderFlag.FP8)
    return frozenset(chosen | draw(st.sets(st.sampled_from(constraints), max_size=1)))


def _types(draw: Callable[[Any], Any], version: tuple[int, ...], names: list[str]) -> dict[str, DataType]:
    known = [DataType.FLOAT, DataType.HALF, DataType.INT8, *([DataType.BF16] if version >= (10,) else [])]
    return draw(st.dictionaries(st.sampled_from(names), st.sampled_from(known)))


def _pools(draw: Callable[[Any], Any], version: tuple[int, ...]) -> dict[str, int]:
    if version < (8, 4):
        return draw(st.dictionaries(st.just("WORKSPACE"), st.integers(0, 4096).map(lambda size: size << 20)))
    powers = st.integers(12, 30).map(lambda exponent: 1 << exponent)
    dla = st.dictionaries(st.sampled_from(["DLA_MANAGED_SRAM", "DLA_LOCAL_DRAM", "DLA_GLOBAL_DRAM"]), powers)
    return {**draw(dla), **draw(st.dictionaries(st.just("WORKSPACE"), st.integers(0, 1 << 40)))}


def _profiles(draw: Callable[[Any], Any], most: int) -> tuple[ProfileShapes, ...]:
    triples = st.tuples(*[st.integers(1, 64)] * 3).map(sorted)
    return tuple(
        ProfileShapes({"x: y": tuple((batch, 4, 8, 8) for batch in triple)})
        for triple in draw(st.lists(triples, max_size=most))
    )


@st.composite
def expressible_builds(draw: Callable[[Any], Any]) -> BoardBuild:
    """Builds of `small_network` that trtexec of their version can be told."""
    version = draw(st.sampled_from(VERSIONS))
    uses_dla = draw(st.booleans())
    flags = _flags(draw, version)
    names = list(NAMES)
    devices = draw(st.dictionaries(st.sampled_from(names), st.sampled_from(["GPU", "DLA"] if uses_dla else ["GPU"])))
    has_types = version >= (8, 4)
    scales = st.dictionaries(st.sampled_from(["x: y", "z"]), st.floats(0, 4, width=32).map(abs), min_size=1)
    int8 = BuilderFlag.INT8 in flags
    given_scales = draw(scales) if int8 and draw(st.booleans()) else None
    formats = st.sampled_from(
        [(), (IoFormat(DataType.HALF, ("CHW16", "LINEAR")),), (IoFormat(DataType.INT8, ("CHW32",)),)]
    )
    outputs = draw(formats)
    output_types = {name: (dtype,) for name, dtype in _types(draw, version, names).items()} if has_types else {}
    if outputs:  # the type of the last layer's output stands there
        output_types.pop(names[-1], None)
    is_safe = not uses_dla and draw(st.booleans())
    return BoardBuild(
        version,
        flags,
        "DLA" if uses_dla else "GPU",
        draw(st.integers(-1, 1)),
        EngineCapability.SAFETY if is_safe else EngineCapability.STANDARD,
        devices if version >= (8, 6) else {},
        _types(draw, version, names) if has_types else {},
        output_types,
        draw(formats),
        outputs,
        _pools(draw, version),
        _profiles(draw, 3 if version >= (10,) else 1),
        given_scales,
        int8 and given_scales is None,
        profiling_verbosity=draw(st.sampled_from(ProfilingVerbosity)),
        optimization_level=draw(st.integers(0, 5)) if version >= (8, 6) else 3,
    )
