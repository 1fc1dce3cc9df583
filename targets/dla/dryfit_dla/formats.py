"""Tensor formats at the border of a DLA loadable.

Source: TensorRT 10 developer guide, Working with DLA: I/O Formats on DLA. Its formula for DLA_HWC4 has 32 bytes and its
prose 32 for Xavier and 64 for Orin; the headers of TensorRT 8.4 to 9.3 spell both, which is what stands here.
"""

from __future__ import annotations

from dryfit.network.data_types import DataType
from dryfit.target.formats import TensorFormat

_SOURCE = "TensorRT 10 developer guide, Working with DLA: I/O Formats on DLA"
_BOTH = (DataType.HALF, DataType.INT8)

DLA_LINEAR = TensorFormat("DLA_LINEAR", _BOTH, line_alignment_bytes={"": 64}, source=_SOURCE)
DLA_HWC4 = TensorFormat(
    "DLA_HWC4",
    _BOTH,
    channels_vector=4,
    channels_last=True,
    channel_counts=(1, 3, 4),
    padded_channels={1: 1},
    line_alignment_bytes={"xavier": 32, "orin": 64, "": 64},
    reader_kinds=["convolution"],
    source=_SOURCE,
)
CHW16 = TensorFormat("CHW16", [DataType.HALF], channels_vector=16, source=_SOURCE)
CHW32 = TensorFormat("CHW32", [DataType.INT8], channels_vector=32, source=_SOURCE)

INPUT_FORMATS = {
    DataType.HALF: (CHW16, DLA_LINEAR, DLA_HWC4),
    DataType.INT8: (CHW32, DLA_LINEAR, DLA_HWC4),
}
"""What a loadable may read; the native format first. DLA_HWC4 is for a first convolution of 1, 3 or 4 channels."""

OUTPUT_FORMATS = {
    DataType.HALF: (CHW16, DLA_LINEAR),
    DataType.INT8: (CHW32, DLA_LINEAR),
}
"""What a loadable may write; the native format first."""
