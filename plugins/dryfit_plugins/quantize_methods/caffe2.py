"""The method `caffe2`: Caffe2, Int8 operators on QNNPACK."""

from __future__ import annotations

from dryfit.quantization.methods.method import QuantizeMethod
from dryfit_plugins.quantize_methods.rules.signed_codes import for_int8_too
from dryfit_plugins.quantize_methods.rules.unweighted import caffe2 as unweighted
from dryfit_plugins.quantize_methods.rules.weighted import caffe2 as weighted

METHOD = QuantizeMethod(
    name="caffe2",
    title="Caffe2, Int8 operators on QNNPACK",
    library="torch 1.10.2",
    rules=for_int8_too((*weighted.CAFFE2, *unweighted.CAFFE2), "Caffe2"),
    source="measured against torch 1.10.2 on x86-64",
)
"""One scale a tensor; scales in FP32, two roundings. INT8 codes are computed as the UINT8 ones of the same numbers."""
