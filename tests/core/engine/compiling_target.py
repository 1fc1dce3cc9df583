"""A device whose segments are compiled: the program is the segment's network as text, the loader asks the reference."""

import json

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.serialization import network_from_dict, network_to_dict
from dryfit.reference.executor import run_reference
from dryfit.target.formats import LINEAR, TensorFormat
from dryfit.target.limits import LimitTable
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.target import Platform, SegmentRules, Target

HERE = "tests.core.engine.compiling_target"
MAGIC = b"ACME program 1\n"

LIMITS = LimitTable(
    "ACME_COMPILER",
    [],
    supported_kinds=frozenset({"convolution", "activation", "elementwise", "concatenation", "top_k", "shuffle"}),
)
ROWS = TensorFormat("ROWS48", [DataType.FLOAT, DataType.HALF], channels_last=True, line_alignment_bytes={"": 48})
FORMATS = {DataType.FLOAT: (LINEAR, ROWS), DataType.HALF: (ROWS, LINEAR)}
POOLS = (
    MemoryPool("ACME_SRAM", {"": None}, "activations", per="segment"),
    MemoryPool("ACME_WEIGHTS", {"": 1 << 20}, "weights", per="segment"),
)
seen = []
"""Every segment that was compiled in this process."""
loaded = []
"""Every program that was loaded in this process."""


def compile_segment(segment):
    """The network as JSON, then the bytes of its arrays."""
    seen.append(segment)
    network, arrays = network_to_dict(segment.network)
    described = {name: [array.dtype.name, array.shape] for name, array in arrays.items()}
    head = json.dumps({"network": network, "arrays": described}, sort_keys=True).encode()
    return MAGIC + len(head).to_bytes(8, "little") + head + b"".join(array.tobytes() for array in arrays.values())


def load_segment(program):
    """Reads what `compile_segment` wrote."""
    loaded.append(program)
    if not program.startswith(MAGIC):
        raise ValueError(f"no ACME program: it begins with {program[:4]!r}")
    start = len(MAGIC) + 8
    end = start + int.from_bytes(program[len(MAGIC) : start], "little")
    head = json.loads(program[start:end])
    arrays = {}
    for name, (dtype, shape) in head["arrays"].items():
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        arrays[name] = np.frombuffer(program[end : end + size], dtype).reshape(shape)
        end += size
    return Loaded(network_from_dict(head["network"], arrays))


class Loaded:
    """The reference runs the network."""

    def __init__(self, network):
        self.network = network
        self.tensors = {tensor.name: tensor.spec for tensor in (*network.inputs, *network.outputs)}

    def bind(self, binding):
        """A plain function, and a step."""
        found = {}

        def compute():
            found.update(run_reference(self.network, binding.inputs))

        return [compute, Deliver(found, binding.outputs)]


class Deliver:
    """A step: copies the results."""

    name = "deliver"

    def __init__(self, found, outputs):
        self.found, self.outputs = found, outputs

    def run(self):
        for name, array in self.outputs.items():
            array[...] = self.found[name]


TARGET = Target(
    device="ACME_COMPILER",
    title="Acme, which compiles",
    platforms=[Platform("board", "board", "Acme board")],
    precisions=[DataType.FLOAT, DataType.HALF],
    limits_at=f"{HERE}:LIMITS",
    input_formats_at=f"{HERE}:FORMATS",
    output_formats_at=f"{HERE}:FORMATS",
    memory_pools_at=f"{HERE}:POOLS",
    compile_segment_at=f"{HERE}:compile_segment",
    load_segment_at=f"{HERE}:load_segment",
    simulated="how a segment is compiled to a program",
)


def refuse(segment):
    """A compiler that stumbles."""
    raise KeyError(f"no code for {segment.network.layers[0].kind}")


def as_text(segment):
    """A compiler that gives no bytes."""
    return segment.network.name


def variant(device, **changes):
    """The target under another name, with other declarations."""
    return attrs.evolve(TARGET, device=device, **changes)


DYNAMIC = variant("ACME_DYNAMIC", segment_rules=SegmentRules(compiles_dynamic_shapes=True))
REFUSING = variant("ACME_REFUSING", compile_segment_at=f"{HERE}:refuse")
TEXT = variant("ACME_TEXT", compile_segment_at=f"{HERE}:as_text")

ENTRY_POINTS = {
    "dryfit.targets": {
        "acme-compiler": f"{HERE}:TARGET",
        "acme-dynamic": f"{HERE}:DYNAMIC",
        "acme-refusing": f"{HERE}:REFUSING",
        "acme-text": f"{HERE}:TEXT",
    }
}
"""What the package `acme_compilers` names."""
