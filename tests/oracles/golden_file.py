"""Golden vectors: cases with what libraries answered, in an npz file that needs no library to be read.

`document` is JSON as bytes: for each case what it is, and which arrays it has; `content` holds the arrays' bytes one
after the other, so that one compression serves them all. Equal cases and answers give equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layers.quantized_operator import QuantizedOperator
from dryfit.testing.operator_cases.operator_case import OperatorCase

Array = np.ndarray[Any, Any]
_ANSWER = "answer:"


@attrs.frozen(eq=False)
class GoldenVectors:
    """Cases of an operator and their answers.

    Attributes:
        cases: what was asked.
        answers: method to the answer of each case; None where its library refused.
    """

    cases: Sequence[OperatorCase]
    answers: Mapping[str, Sequence[Array | None]]

    def of(self, method: str) -> list[tuple[OperatorCase, Array]]:
        """The cases that a method's library answered."""
        pairs = zip(self.cases, self.answers[method], strict=True)
        return [(case, answer) for case, answer in pairs if answer is not None]


def write_golden(path: Path, vectors: GoldenVectors) -> None:
    """Write cases and answers."""
    documents, content = [], []
    for index, case in enumerate(vectors.cases):
        document, arrays = document_of(case)
        answers = {method: given[index] for method, given in sorted(vectors.answers.items())}
        arrays.update({f"{_ANSWER}{method}": one for method, one in answers.items() if one is not None})
        documents.append({**document, "arrays": [(name, one.dtype.name, one.shape) for name, one in arrays.items()]})
        content += [np.ascontiguousarray(one).tobytes() for one in arrays.values()]
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = {"document": json.dumps(documents).encode(), "content": b"".join(content)}
    np.savez_compressed(path, **{name: np.frombuffer(data, np.uint8) for name, data in stored.items()})  # type: ignore[arg-type]


def read_golden(path: Path) -> GoldenVectors:
    """The cases of a file and their answers."""
    with np.load(path) as stored:
        documents, content = json.loads(stored["document"].tobytes().decode()), stored["content"].tobytes()
    cases, named, start = [], [], 0
    for document in documents:
        arrays = {}
        for name, dtype, shape in document["arrays"]:
            count = int(np.prod(shape))
            arrays[name] = np.frombuffer(content, np.dtype(str(dtype)), count, start).reshape(shape)
            start += arrays[name].nbytes
        cases.append(case_from(document, arrays))
        named.append(arrays)
    methods = sorted({name.removeprefix(_ANSWER) for one in named for name in one if name.startswith(_ANSWER)})
    answers = {method: [arrays.get(_ANSWER + method) for arrays in named] for method in methods}
    return GoldenVectors(cases, answers)


def document_of(case: OperatorCase) -> tuple[dict[str, Any], dict[str, Array]]:
    """A case as JSON and named arrays; `case_from` is the way back."""
    layer = case.layer
    arrays = {"output_scale": layer.output_scale, "output_zero_point": layer.output_zero_point}
    for kind, values in (("input", case.inputs), ("scale", layer.scales), ("zero_point", layer.zero_points)):
        arrays.update({f"{kind}{index}": array for index, array in enumerate(values)})
    document = {
        "computes": layer.computes,
        "fields": layer.fields,
        "to_type": layer.to_type.name,
        "limits": [repr(limit) for limit in layer.limits],
        "inputs": len(case.inputs),
    }
    return document, {name: array for name, array in arrays.items() if array is not None}


def case_from(document: Mapping[str, Any], arrays: Mapping[str, Array]) -> OperatorCase:
    """The case of a document."""
    indices = range(document["inputs"])
    lower, upper = (float(limit) for limit in document["limits"])
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in document["fields"].items()}
    layer = QuantizedOperator(
        computes=document["computes"],
        method="",
        fields=fields,
        scales=tuple(arrays.get(f"scale{index}") for index in indices),
        zero_points=tuple(arrays.get(f"zero_point{index}") for index in indices),
        output_scale=arrays.get("output_scale"),
        output_zero_point=arrays.get("output_zero_point"),
        to_type=DataType.parse(document["to_type"]),
        limits=(lower, upper),
    )
    return OperatorCase(layer, tuple(arrays.get(f"input{index}") for index in indices))
