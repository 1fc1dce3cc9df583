"""Plans made by hand: one operation a layer (or a group), by the kernel that serves everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dryfit.engine.plan import LayerPlacement, Operation, Plan, ProfileShapes, Reformat, Segment, TensorPlacement
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.target.kernels import HostLayout
from dryfit.target.verdict import Verdict, Violation


def plan_of(
    network: Network,
    *,
    groups: Sequence[Sequence[str]] = (),
    kernel: str = "cpu.reference",
    layouts: Mapping[str, HostLayout] | None = None,
    weights: Mapping[str, Mapping[str, np.ndarray]] | None = None,
    profiles: Sequence[Mapping[str, Any]] = (),
    settings: Mapping[str, Any] | None = None,
) -> Plan:
    """A plan whose operations are `groups` (names of layers) and, for layers in none, one each."""
    network.refresh_shapes()  # also sorts the layers
    grouped = {names[-1]: tuple(names) for names in groups}
    inner = {name for names in groups for name in names[:-1]}
    operations = [
        Operation(
            name=" + ".join(names),
            layers=names,
            kernel=kernel,
            device="GPU",
            segment=0,
            precision=DataType.FLOAT,
            source_layers=names,
            onnx_nodes=(),
            weights=(weights or {}).get(names[0], {}),
        )
        for layer in network.layers
        if layer.name not in inner
        for names in [grouped.get(layer.name, (layer.name,))]
    ]
    return Plan(
        network=network,
        operations=operations,
        segments=[
            Segment(
                0,
                "GPU",
                [layer.name for layer in network.layers],
                [tensor.name for tensor in network.inputs],
                [tensor.name for tensor in network.outputs],
                {"WORKSPACE": 1024},
            )
        ],
        reformats=[Reformat("x", "GPU FLOAT LINEAR", "GPU HALF LINEAR", 64, "precision")],
        placements={
            tensor.name: TensorPlacement(
                tensor.name, "GPU", "LINEAR", "", 0, 64, (layouts or {}).get(tensor.name, HostLayout.LINEAR)
            )
            for tensor in network.tensors
        },
        verdicts={
            network.layers[0].name: {
                "DLA": Verdict(
                    network.layers[0].name,
                    "DLA",
                    "agx-orin-64",
                    "10.3",
                    violations=[Violation("dla.rule", "window", "9", "1 to 8", "message", "remedy", "source")],
                )
            }
        }
        if network.layers
        else {},
        profiles=[ProfileShapes(profile) for profile in profiles],
        pool_sizes={"GPU/WORKSPACE": 1024},
        settings=settings or {"flags": ["FP16"], "limits": {"a": 1.5}},
        plugins=["gpu 0.1.0 (dryfit)"],
        layers=[
            LayerPlacement(layer.name, layer.kind, "GPU", DataType.FLOAT, 0, "default", ("node",))
            for layer in network.layers
        ],
        warnings=["a warning"],
    )
