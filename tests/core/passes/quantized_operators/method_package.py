"""A stranger's quantize method that computes what the real network says, rounded once: exact for powers of two."""

CODE = '''
import numpy as np
from dryfit.network.data_types import DataType
from dryfit.quantization.methods.method import MethodRule, QuantizeMethod, Requirement
from dryfit.reference.registry import evaluate


def stated(call, rule):
    """Dequantize, compute, bound, quantize."""
    reals = [None if one is None else real(one, call) for one in call.operands]
    kind = call.layer.kind if call.layer is not None else ""
    y = reals[0] if kind in ("quantize", "dequantize", "identity") else evaluate(call.layer, reals)[0]
    y = np.clip(y, *call.limits)
    if call.output_scale is None:
        return y.astype(np.float32)
    codes = np.rint(y / call.output_scale) + call.output_zero_point
    return np.clip(codes, *call.code_range).astype(call.to_type.numpy)


def real(operand, call):
    if operand.values.dtype == np.float32:
        return operand.values
    if operand.scale is None:
        scales = [one.scale.reshape(-1) for one in call.operands[:2]]
        return (operand.values * scales[0] * scales[1]).astype(np.float32)
    shape = (-1, *[1] * (operand.values.ndim - 1)) if operand.scale.ndim else ()
    distance = operand.values.astype(np.int32) - operand.zero_point.reshape(shape)
    return (distance * operand.scale.reshape(shape)).astype(np.float32)


def rule(operator, **facts):
    return MethodRule(
        operator=operator, definition=stated, formula="Q(f(DQ))", fidelity="documented", source="this test", **facts
    )


METHOD = QuantizeMethod(
    name="acme",
    title="a test",
    source="this test",
    rules=[
        rule("convolution"),
        rule("inner_product"),
        rule("requantize"),
        rule("quantize"),
        rule("dequantize"),
        rule("softmax", types=frozenset({DataType.UINT8})),
        rule("sigmoid", requirements=[Requirement(text="nothing fits", holds=lambda call: False)]),
    ],
)
'''
ENTRIES = {"dryfit.quantize_methods": {"acme": "acme:METHOD"}}
