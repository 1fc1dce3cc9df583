"""Rules for layers that read a network input or write a network output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryfit.network.data_types import DataType
from dryfit.target.checks import check, either
from dryfit.target.limits import Finding, Question, rule, rules
from dryfit_dla.formats import DLA_HWC4, DLA_LINEAR, INPUT_FORMATS, OUTPUT_FORMATS
from dryfit_dla.limits.documents import FORMATS, HEADERS, QUESTIONS, REPORTS, STANDALONE
from dryfit_dla.quantities import is_hwc4

if TYPE_CHECKING:
    from dryfit.network.tensor import Tensor


@check("input format")
def hwc4_goes_to_convolutions(question: Question, *, channels: tuple[int, ...] = (1, 3, 4)) -> Finding | None:
    """An input in DLA_HWC4 must have {channels} channels, and only convolutions may read it."""
    for tensor in question.inputs:
        if not is_hwc4(tensor):
            continue
        others = sorted({layer.kind for layer, _ in tensor.consumers if layer.kind != "convolution"})
        if others:
            return Finding(
                f"DLA_HWC4 for {tensor.name!r}, read by {', '.join(others)}", "DLA_HWC4 for convolutions only"
            )
        found = question.spec(tensor).shape[-3]
        if found not in channels:
            return Finding(f"DLA_HWC4 for {tensor.name!r} with {found} channels", f"{either(channels)} channels")
    return None


@check("output format")
def no_output_is_hwc4(question: Question) -> Finding | None:
    """Outputs must not have the format DLA_HWC4."""
    outputs = [repr(tensor.name) for tensor in question.outputs if is_hwc4(tensor)]
    return Finding(f"DLA_HWC4 for {', '.join(outputs)}", "DLA_LINEAR, CHW16, CHW32") if outputs else None


@check("network output")
def inner_tensors_are_no_outputs(question: Question) -> Finding | None:
    """A tensor between two layers on the DLA must not be a network output."""
    marked = [repr(tensor.name) for tensor in question.outputs if tensor.is_network_output and tensor.consumers]
    return Finding(f"{', '.join(marked)}, read by other layers", "one that no layer reads") if marked else None


@check("input type")
def hwc4_has_the_layers_type(question: Question) -> Finding | None:
    """An FP16 or INT8 input in DLA_HWC4 must have the precision of the layer."""
    for tensor in question.inputs:
        dtype = question.spec(tensor).dtype
        if is_hwc4(tensor) and dtype in (DataType.INT8, DataType.HALF) and dtype is not question.precision:
            return Finding(f"{dtype.text} for {tensor.name!r}", question.precision.text)
    return None


def _at_border(question: Question) -> list[tuple[Tensor, set[str]]]:
    """Network inputs and outputs that the layer reads or writes, with the formats that they may have."""
    reads = {one.name for one in INPUT_FORMATS.get(question.precision, ())}
    writes = {one.name for one in OUTPUT_FORMATS.get(question.precision, ())}
    inputs = [tensor for tensor in question.inputs if tensor.is_network_input]
    outputs = [tensor for tensor in question.outputs if tensor.is_network_output]
    return [*((tensor, reads) for tensor in inputs), *((tensor, writes) for tensor in outputs)]


@check("allowed formats")
def border_formats_are_legal(question: Question) -> Finding | None:
    """If formats are set on a network input or output, the DLA must support one of them."""
    foreign = {
        tensor.name: (tensor.allowed_formats, legal)
        for tensor, legal in _at_border(question)
        if legal and tensor.allowed_formats is not None and not tensor.allowed_formats & legal
    }
    if not foreign:
        return None
    found = [f"{name!r}: {', '.join(sorted(formats))}" for name, (formats, _) in foreign.items()]
    return Finding("; ".join(found), " or ".join(sorted(set.union(*(legal for _, legal in foreign.values())))))


@check("allowed formats")
def border_formats_are_those_of_7(question: Question) -> Finding | None:
    """Network inputs and outputs must allow a format other than DLA_LINEAR and DLA_HWC4."""
    new = {
        tensor.name: tensor.allowed_formats
        for tensor, _ in _at_border(question)
        if tensor.allowed_formats and tensor.allowed_formats <= {DLA_LINEAR.name, DLA_HWC4.name}
    }
    if not new:
        return None
    return Finding(
        "; ".join([f"{name!r}: {', '.join(sorted(formats))}" for name, formats in new.items()]), "CHW16, CHW32"
    )


@check("allowed formats")
def border_formats_are_native(question: Question) -> Finding | None:
    """Network inputs and outputs should not be DLA_LINEAR, which the DLA converts to channel vectors internally."""
    planar = [
        repr(tensor.name)
        for tensor, _ in _at_border(question)
        if tensor.allowed_formats == frozenset({DLA_LINEAR.name})
    ]
    if not planar:
        return None
    native = OUTPUT_FORMATS[question.precision][0].name if question.precision in OUTPUT_FORMATS else "CHW16 or CHW32"
    return Finding(
        f"DLA_LINEAR for {', '.join(planar)}",
        native,
        message=f"{', '.join(planar)} in DLA_LINEAR is converted inside the DLA, one more pass than with {native}",
    )


@check("engine capability")
def is_standalone(question: Question) -> Finding | None:
    """The engine is a standalone loadable."""
    capability = question.options.get("engine_capability", "STANDARD")
    return None if capability == "DLA_STANDALONE" else Finding(capability, "DLA_STANDALONE")


@check("flags")
def border_is_direct(question: Question) -> Finding | None:
    """The flag DIRECT_IO must be set if the network has inputs or outputs."""
    if not _at_border(question) or "DIRECT_IO" in question.options.get("flags", ()):
        return None
    return Finding("without DIRECT_IO", "with DIRECT_IO")


@check("allowed formats")
def border_formats_are_stated(question: Question) -> Finding | None:
    """Network inputs and outputs must allow DLA formats only."""
    wrong = {
        tensor.name: (tensor.allowed_formats, legal)
        for tensor, legal in _at_border(question)
        if tensor.allowed_formats is None or not tensor.allowed_formats <= legal
    }
    if not wrong:
        return None
    found = [f"{name!r}: {', '.join(sorted(formats)) if formats else 'all'}" for name, (formats, _) in wrong.items()]
    return Finding("; ".join(found), " or ".join(sorted(set.union(*(legal for _, legal in wrong.values())))))


BORDERS = rules(
    (),
    rule(
        "formats.hwc4_input",
        hwc4_goes_to_convolutions,
        source=FORMATS,
        remedy="Allow DLA_LINEAR, CHW16 or CHW32 for this input",
        number="IO-03",
    ),
    rule(
        "formats.hwc4_output",
        no_output_is_hwc4,
        source=FORMATS,
        remedy="Allow DLA_LINEAR, CHW16 or CHW32 for this output",
        number="IO-02",
    ),
    rule(
        "formats.hwc4_type",
        hwc4_has_the_layers_type,
        source=f"{QUESTIONS}: an input in DLA_HWC4 has the precision of the convolution that reads it",
        remedy="Set the input's type to the precision of the convolution, or allow another format",
        number="IO-04",
    ),
    rule(
        "formats.border",
        border_formats_are_legal,
        source=FORMATS,
        severity="warning",
        remedy="Allow a DLA format: any other needs a copy, which requires a fallback device and excludes DIRECT_IO",
        number="IO-01, IO-02",
    ),
    rule(
        "formats.before_8_0",
        border_formats_are_those_of_7,
        until="7.2",
        source=f"{HEADERS} of 8.0, TensorFormat: they added DLA_LINEAR and DLA_HWC4",
        remedy="Allow CHW16 (FP16) or CHW32 (INT8), or use software 8.0 or newer",
    ),
    rule(
        "formats.planar",
        border_formats_are_native,
        source="NVIDIA Deep-Learning-Accelerator-SW: planar inputs and outputs need a pass through the reshape engine",
        severity="note",
        remedy="Allow CHW16 (FP16) or CHW32 (INT8), which need no conversion",
        fidelity="inferred",
        number="IO-10",
    ),
    rule(
        "standalone.direct_io",
        border_is_direct,
        when=is_standalone,
        source=STANDALONE,
        severity="warning",
        remedy="Set the flag DIRECT_IO: nothing converts formats around a standalone loadable",
        number="SA-01",
    ),
    rule(
        "standalone.formats",
        border_formats_are_stated,
        when=is_standalone,
        source=STANDALONE,
        severity="warning",
        remedy="Set allowed_formats on these tensors",
        number="SA-01",
    ),
    rule(
        "inner_output",
        inner_tensors_are_no_outputs,
        source=f"{REPORTS}: the inserted copy is not supported on the DLA and may split the loadable",
        severity="warning",
        fidelity="inferred",
        remedy="Unmark the output if it is not needed",
    ),
)
