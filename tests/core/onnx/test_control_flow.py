"""If, Loop and Scan, compared with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import dryfit
from dryfit.errors import OnnxImportError
from dryfit.network.layer import with_bodies
from dryfit.onnx import backend
from dryfit.onnx.importer import network_from_onnx
from dryfit.reference.executor import run_reference

onnxruntime = pytest.importorskip("onnxruntime")

F = np.float32
Feeds = dict[str, np.ndarray]


def model(graph: str, opset: int = 17) -> onnx.ModelProto:
    parsed = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]>\n{graph}')
    onnx.checker.check_model(parsed)
    return parsed


def runtime_outputs(source: onnx.ModelProto, feeds: Feeds) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(source.SerializeToString(), options).run(None, feeds)


def check(source: onnx.ModelProto, *runs: Feeds) -> None:
    """The references, a built engine and the engine that is read from its file give what ONNX Runtime gives."""
    prepared = backend.prepare(source)
    for feeds in runs:
        expected = runtime_outputs(source, feeds)
        found = list(run_reference(network_from_onnx(source), feeds).values())
        for outputs in (found, list(prepared.run(feeds))):
            for one, other in zip(outputs, expected, strict=True):
                assert one.shape == other.shape
                assert one.dtype == other.dtype
                np.testing.assert_allclose(one, other, rtol=1e-6)


BRANCHES = """
    g (bool c, float[{n}] x, float[{n}] y) => (float[{n}] z, float[{n}] w) {{
        t = Mul (x, y)
        z, w = If (c) <
            then_branch = a () => (float[{n}] p, float[{n}] q) {{ p = Add (t, x)  q = Neg (y) }},
            else_branch = b () => (float[{n}] p, float[{n}] q) {{ p = Sub (t, y)  q = Identity (p) }}>
    }}"""


@pytest.mark.parametrize("extent", ["3", "N"])
def test_a_conditional_runs_the_selected_branch(extent: str) -> None:
    x, y = np.array([1, 2, 3], F), np.array([4, -5, 6], F)
    check(model(BRANCHES.format(n=extent)), *({"c": np.array(c), "x": x, "y": y} for c in (True, False)))


def test_branches_may_have_different_extents() -> None:
    source = model("""
        g (bool c, float[N] x) => (float[M] z) {
            z = If (c) <then_branch = a () => (float[P] p) { p = Concat <axis = 0> (x, x) },
                        else_branch = b () => (float[Q] p) { p = Relu (x) }>
        }""")
    check(source, *({"c": np.array(c), "x": np.array([1, -2, 3], F)} for c in (True, False)))


def test_a_known_condition_imports_its_branch_only() -> None:
    source = model("""
        g (float[1, 3] x) => (float[3] z) <bool c = {1}> {
            z = If (c) <then_branch = a () => (float[3] p) { p = Squeeze (x) },
                        else_branch = b () => (float[1, 3] p) { q = SequenceConstruct (x)
                                                                i = Constant <value_int = 0> ()
                                                                p = SequenceAt (q, i) }>
        }""")
    network = network_from_onnx(source)
    assert [layer.kind for layer in network] == ["shuffle"]
    assert network.layers[0].onnx_nodes == ("node_of_z/node_of_p",)
    check(source, {"x": np.array([[1, 2, 3]], F)})


def test_a_branch_that_is_known_is_inlined_inside_a_body_too() -> None:
    source = model("""
        g (int64 n, float[2] x, float[2] w) => (float[2] y) <bool yes = {1}> {
            y = Loop (n, , x) <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
                on = Identity (go)
                t = If (yes) <then_branch = a () => (float[2] p) { q = Mul (s, w)  p = Add (q, x) },
                              else_branch = e () => (float[2] p) { p = Identity (s) }>
            }>
        }""")
    check(source, {"n": np.array(3), "x": np.array([1, 2], F), "w": np.array([0.5, -1], F)})
    (loop,) = [layer for layer in network_from_onnx(source) if layer.bodies]
    assert [layer.name for layer in loop.bodies[0].layers] == [
        "node_of_y/node_of_t/node_of_q",
        "node_of_y/node_of_t/node_of_p",
    ]


def test_nodes_may_stand_in_any_order_and_subgraphs_have_initializers() -> None:
    source = model("""
        g (bool c, float[2] x) => (float[2] z) {
            t = Neg (x)
            z = If (c) <then_branch = a () => (float[2] p) <float[2] k = {3, 4}> { p = Mul (t, k) },
                        else_branch = b () => (float[2] p) <float[2] k = {5, 6}> { p = Add (t, k) }>
        }""")
    feeds = [{"c": np.array(c), "x": np.array([1, 2], F)} for c in (True, False)]
    expected = [runtime_outputs(source, one) for one in feeds]
    nodes = list(source.graph.node)[::-1]
    del source.graph.node[:]
    source.graph.node.extend(nodes)
    for one, outputs in zip(feeds, expected, strict=True):
        np.testing.assert_array_equal(run_reference(network_from_onnx(source), one)["z"], outputs[0])


def test_a_function_may_hold_a_conditional_and_be_called_in_a_loop() -> None:
    source = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17, "local": 1]>
        g (int64 n, float[2] x) => (float[2] y, float[2] z) {
            y = Loop (n, , x) <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
                on = Identity (go)
                t = local.choose (s)
            }>
            z = local.choose (y)
        }
        <domain: "local", opset_import: ["": 17]>
        choose (v) => (w) {
            zero = Constant <value = float {0}> ()
            sum = ReduceSum <keepdims = 0> (v)
            is_small = Less (sum, zero)
            w = If (is_small) <then_branch = a () => (float[2] p) { p = Abs (v) },
                               else_branch = b () => (float[2] p) { q = Add (v, v)  p = Neg (q) }>
        }""")
    check(source, *({"n": np.array(n), "x": np.array([1, -3], F)} for n in (0, 1, 4)))


def test_branches_of_different_ranks_are_refused_with_the_condition() -> None:
    source = model("""
        g (bool c, float[1, 3] x) => (float[M] z) {
            z = If (c) <then_branch = a () => (float[3] p) { p = Squeeze (x) },
                        else_branch = b () => (float[1, 3] p) { p = Identity (x) }>
        }""")
    with pytest.raises(OnnxImportError, match=r"same rank and type in both branches .*FP32 \(3,\) and FP32 \(1, 3\)"):
        network_from_onnx(source)


LOOP = """
    g (int64 n, bool c, float[2] x, float limit) => (float[2] y, float[K, 2] trace) {{
        y, trace = Loop ({inputs}, x) <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t, float[2] u) {{
            k = Cast <to = 1> (i)
            t = Add (s, k)
            m = ReduceMax <keepdims = 0> (t)
            on = {condition}
            u = Mul (t, x)
        }}>
    }}"""


@pytest.mark.parametrize("inputs", ["n, c", 'n, ""', '"", c'])
@pytest.mark.parametrize("condition", ["Less (m, limit)", "Identity (go)"])
def test_a_loop_ends_at_its_trip_count_or_its_condition(inputs: str, condition: str) -> None:
    if condition == "Identity (go)" and inputs == '"", c':
        pytest.skip("it never ends")
    x, limit = np.array([0.5, 1], F), np.array(7, F)
    runs = [{"n": np.array(n), "c": np.array(c), "x": x, "limit": limit} for n, c in ((3, True), (9, True), (9, False))]
    source = model(LOOP.format(inputs=inputs.replace('""', ""), condition=condition))
    if inputs == '"", c' and condition == "Less (m, limit)":
        runs = runs[1:]
    used = {value for node in source.graph.node for value in node.input}
    used |= {value for node in source.graph.node[0].attribute[0].g.node for value in node.input}
    for run in runs:
        for name in set(run) - used:
            del run[name]
    kept = [info for info in source.graph.input if info.name in used]
    del source.graph.input[:]
    source.graph.input.extend(kept)
    check(source, *runs)


def test_no_iteration_gives_the_initial_states_and_empty_outputs() -> None:
    source = model(LOOP.format(inputs="n, c", condition="Less (m, limit)"))
    x, limit = np.array([0.5, 1], F), np.array(7, F)
    check(source, {"n": np.array(0), "c": np.array(True), "x": x, "limit": limit})


def test_a_state_may_grow() -> None:
    source = model("""
        g (int64 n, float[2] x) => (float[K] y) <float[1] zero = {0}> {
            y = Loop (n, , zero) <body = b (int64 i, bool go, float[P] s) => (bool on, float[Q] t) {
                on = Identity (go)
                k = Shape (s)
                e = Cast <to = 1> (k)
                t = Concat <axis = 0> (s, x, e)
            }>
        }""")
    check(source, *({"n": np.array(n), "x": np.array([1, 2], F)} for n in (1, 3)))


def test_conditionals_in_loops_in_loops_read_tensors_of_all_levels() -> None:
    source = model("""
        g (int64 n, float[A, 3] x, float[3] w) => (float[3] y) <float[3] zero = {0, 0, 0}, int64 two = {2}> {
            y = Loop (n, , zero) <body = outer (int64 i, bool go, float[3] s) => (bool on, float[3] t) {
                on = Identity (go)
                row = Gather <axis = 0> (x, i)
                t = Loop (two, , s) <body = inner (int64 j, bool go2, float[3] p) => (bool on2, float[3] q) {
                    on2 = Identity (go2)
                    total = Add (i, j)
                    half = Div (total, two)
                    twice = Mul (half, two)
                    even = Equal (twice, total)
                    r = If (even) <then_branch = a () => (float[3] h) { h = Mul (row, w) },
                                   else_branch = b () => (float[3] h) { h = Sub (p, row) }>
                    q = Add (p, r)
                }>
            }>
        }""")
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(5, 3)).astype(F), rng.normal(size=3).astype(F)
    check(source, *({"n": np.array(n), "x": x, "w": w} for n in (0, 1, 5)))
    network = network_from_onnx(source)
    nodes = {node for layer in with_bodies(network.layers) for node in layer.onnx_nodes}
    assert {"node_of_y", "node_of_y/node_of_t", "node_of_y/node_of_t/node_of_r/node_of_h"} <= nodes


SCAN = """
    g (float[2] s0, float[{shape_a}] a, float[{shape_b}] b) => (float[2] s1, float[N, M] f, float[P, Q] r) {{
        s1, f, r = Scan <num_scan_inputs = 2, scan_input_axes = [0, {axis}], scan_input_directions = [0, 1],
                         scan_output_axes = [0, 1], scan_output_directions = [0, 1],
                         body = body (float[2] s, float[2] p, float[2] q) => (float[2] t, float[2] u, float[2] v) {{
            t = Add (s, p)
            u = Mul (t, q)
            v = Sub (u, s0)
        }}> (s0, a, b)
    }}"""


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("axis", [1, -1])
def test_a_scan_reads_and_writes_along_axes_in_both_directions(dynamic: bool, axis: int) -> None:
    rng = np.random.default_rng(1)
    feeds = {"s0": rng.normal(size=2).astype(F), "a": rng.normal(size=(4, 2)), "b": rng.normal(size=(2, 4))}
    feeds = {name: value.astype(F) for name, value in feeds.items()}
    shapes = {"shape_a": "T, 2", "shape_b": "2, T"} if dynamic else {"shape_a": "4, 2", "shape_b": "2, 4"}
    check(model(SCAN.format(**shapes, axis=axis)), feeds)


def test_a_scan_of_opset_8_has_a_batch_and_lengths() -> None:
    source = model(
        """
        g (int64[2] lengths, float[2, 1] s0, float[2, 3, 1] x) => (float[2, 1] s1, float[2, 3, 1] y) {
            s1, y = Scan <num_scan_inputs = 1, body = body (float[1] s, float[1] e) => (float[1] t, float[1] u) {
                t = Add (s, e)
                u = Identity (t)
            }> (lengths, s0, x)
        }""",
        opset=8,
    )
    rng = np.random.default_rng(2)
    feeds = {"lengths": np.array([3, 1]), "s0": rng.normal(size=(2, 1)), "x": rng.normal(size=(2, 3, 1))}
    check(source, {name: value if name == "lengths" else value.astype(F) for name, value in feeds.items()})


@pytest.mark.parametrize("name", ["loop", "scan"])
def test_the_models_of_polygraphy_run_on_every_device(shared: Path, name: str) -> None:
    path = shared / "clients/polygraphy-tests/tests/models" / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    source = onnx.load(path)
    rng = np.random.default_rng(3)
    feeds = (
        {"input_0": np.array([0], np.int32)}
        if name == "loop"
        else {"initial": rng.normal(size=2).astype(F), "x": rng.normal(size=(3, 2)).astype(F)}
    )
    expected = runtime_outputs(source, feeds)
    for device in ("CPU", "GPU", "DLA"):
        config = dryfit.BuilderConfig()
        config.default_device_type = device
        config.allow_fallback(None if device != "DLA" else "GPU")
        engine = dryfit.Builder().build_engine(network_from_onnx(source), config)
        loaded = dryfit.Runtime().deserialize_cuda_engine(engine.serialize())
        for one, other in zip(loaded.create_execution_context().run(feeds).values(), expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_node_of_a_subgraph_that_is_not_supported_is_named() -> None:
    source = model("""
        g (bool c, float[3] x) => (float[3] z) {
            z = If (c) <then_branch = a () => (float[3] p) { p = Relu (x) },
                        else_branch = b () => (float[3] p) { q = SequenceConstruct (x)  i = Constant <value_int = 0> ()
                                                             p = SequenceAt (q, i) }>
        }""")
    with pytest.raises(OnnxImportError, match=r"node 'node_of_z/node_of_q' \(SequenceConstruct\)"):
        network_from_onnx(source)


def test_a_loop_without_end_is_refused() -> None:
    source = model("""
        g (float[3] x) => (float[3] z) {
            z = Loop (, , x) <body = b (int64 i, bool go, float[3] s) => (bool on, float[3] t) {
                on = Identity (go)
                t = Relu (s)
            }>
        }""")
    with pytest.raises(OnnxImportError, match="The loop never ends"):
        network_from_onnx(source)
