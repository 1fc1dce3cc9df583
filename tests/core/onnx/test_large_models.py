"""A model of more than 2 GB: its weights are mapped, and not copied."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

TENSOR_BYTES = 1 << 30
TENSORS = 3

IMPORT = """
import resource, sys
import numpy, onnx
from dryfit.onnx.importer import network_from_onnx
from dryfit.onnx.registry import all_importers
all_importers()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
network = network_from_onnx(sys.argv[1])
weights = [layer.kernel for layer in network if layer.kind == "fully_connected"]
print(sum(array.nbytes for array in weights), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory as Linux reports it")
def test_a_model_of_three_gigabytes_is_imported_in_a_few_megabytes(tmp_path: Path) -> None:
    rows = columns = 1 << 14
    with (tmp_path / "weights.bin").open("wb") as file:
        os.truncate(file.fileno(), TENSORS * TENSOR_BYTES)  # a hole: takes no disk
    tensors, nodes = [], []
    for index in range(TENSORS):
        tensor = onnx.TensorProto(
            name=f"w{index}",
            data_type=onnx.TensorProto.FLOAT,
            dims=[rows, columns],
            data_location=onnx.TensorProto.EXTERNAL,
        )
        entries = {"location": "weights.bin", "offset": index * TENSOR_BYTES, "length": TENSOR_BYTES}
        tensor.external_data.extend(onnx.StringStringEntryProto(key=key, value=str(v)) for key, v in entries.items())
        tensors.append(tensor)
        nodes.append(onnx.helper.make_node("Gemm", [f"x{index}", f"w{index}"], [f"x{index + 1}"], transB=1))
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "large",
        [value("x0", onnx.TensorProto.FLOAT, [1, columns])],
        [value(f"x{TENSORS}", onnx.TensorProto.FLOAT, [1, rows])],
        tensors,
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)]).SerializeToString()
    )
    output = subprocess.run(
        [sys.executable, "-c", IMPORT, str(path)], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    weights, grown = (int(word) for word in output.split())
    assert weights == TENSORS * TENSOR_BYTES > 2**31
    assert grown < 100 * 2**20
