"""Models on which each edit has a place, and models on which it has none."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from tests.core.onnx.models import model, numbers


@attrs.frozen
class Case:
    """A model for an edit.

    Attributes:
        edit: its id.
        name: of the case.
        body, x, y: nodes, input and output, in the notation of `onnx.parser`.
        opset: of the model.
        weights: initializers.
        kinds: operators of the edited model, sorted, each once; () for models that stay as they are.
    """

    edit: str
    name: str
    body: str
    x: str
    y: str
    opset: int = 13
    weights: dict[str, np.ndarray] = attrs.field(factory=dict)
    kinds: tuple[str, ...] = ()

    @property
    def model(self) -> Any:
        return model(self.body, inputs=self.x, outputs=self.y, opset=self.opset, weights=self.weights)

    def __str__(self) -> str:
        return f"{self.edit}: {self.name}"


def integers(*values: int) -> np.ndarray:
    return np.asarray(values, np.int64)


def floats(*values: float) -> np.ndarray:
    return np.asarray(values, np.float32)


BOUNDS = {"low": np.float32(0).reshape(()), "high": np.float32(6).reshape(())}
N_2_12_12 = "float[N,2,12,12] x"

CHANGED = [
    Case("average-pool-cascade", "global 7x7", "y = GlobalAveragePool(x)", "float[N,3,7,7] x", "float[N,3,1,1] y",
         kinds=("AveragePool",)),
    Case("average-pool-cascade", "global 12x56", "y = GlobalAveragePool(x)", "float[N,3,12,56] x", "float[N,3,1,1] y",
         kinds=("AveragePool",)),
    Case("average-pool-cascade", "a prime extent", "y = GlobalAveragePool(x)", "float[N,3,13,26] x",
         "float[N,3,1,1] y", kinds=("AveragePool", "Conv")),
    Case("average-pool-cascade", "mean without the axes", "y = ReduceMean <axes = [-1, 2], keepdims = 0> (x)",
         "float[N,3,14,14] x", "float[N,3] y", kinds=("AveragePool", "Reshape")),
    Case("average-pool-cascade", "axes as an input", "y = ReduceMean (x, axes)", "float[N,3,10,10] x",
         "float[N,3,1,1] y", opset=18, weights={"axes": integers(2, 3)}, kinds=("AveragePool",)),
    Case("average-pool-cascade", "a large window", "y = AveragePool <kernel_shape = [14, 14]> (x)",
         "float[N,3,14,14] x", "float[N,3,1,1] y", kinds=("AveragePool",)),
    Case("max-pool-cascade", "global 13x30", "y = GlobalMaxPool(x)", "float[N,3,13,30] x", "float[N,3,1,1] y",
         kinds=("MaxPool",)),
    Case("max-pool-cascade", "maximum without the axes", "y = ReduceMax <axes = [2, 3], keepdims = 0> (x)",
         "float[N,3,9,9] x", "float[N,3] y", kinds=("MaxPool", "Reshape")),
    Case("max-pool-cascade", "a padded window", "y = MaxPool <kernel_shape = [13, 9], pads = [6, 4, 6, 4]> (x)",
         "float[N,3,20,20] x", "float[N,3,20,20] y", kinds=("MaxPool",)),
    Case("max-pool-cascade", "a window with strides",
         "y = MaxPool <kernel_shape = [10, 11], strides = [2, 3]> (x)", "float[N,3,20,20] x", "float[N,3,6,4] y",
         kinds=("MaxPool",)),
    Case("gemm-convolution", "flattened", "f = Flatten(x) y = Gemm <transB = 1, alpha = 0.5, beta = 2.0> (f, w, b)",
         "float[N,3,4,5] x", "float[N,7] y", weights={"w": numbers(7, 60), "b": numbers(7, seed=1)},
         kinds=("Conv", "Reshape")),
    Case("gemm-convolution", "a matrix", "y = Gemm (x, w)", "float[N,6] x", "float[N,4] y",
         weights={"w": numbers(6, 4)}, kinds=("Conv", "Reshape")),
    Case("gemm-convolution", "a product and a sum", "p = MatMul(x, w) y = Add(b, p)", "float[N,6] x", "float[N,4] y",
         weights={"w": numbers(6, 4), "b": numbers(1, 4, seed=1)}, kinds=("Conv", "Reshape")),
    Case("gemm-convolution", "two layers and a softmax",
         "f = Flatten(x) g = Gemm(f, v) r = Relu(g) h = Gemm <transB = 1> (r, w) y = Softmax <axis = -1> (h)",
         "float[N,3,2,2] x", "float[N,4] y", weights={"v": numbers(12, 6), "w": numbers(4, 6, seed=1)},
         kinds=("Conv", "Relu", "Reshape", "Softmax")),
    Case("deconvolution-padding", "pads",
         "y = ConvTranspose <strides = [2, 2], pads = [1, 0, 1, 1], output_padding = [1, 0]> (x, w, b)",
         "float[N,3,5,6] x", "float[N,2,10,12] y", weights={"w": numbers(3, 2, 3, 3), "b": numbers(2, seed=1)},
         kinds=("ConvTranspose", "Slice")),
    *(
        Case("deconvolution-padding", f"{mode} in opset {opset}",
             f'y = ConvTranspose <strides = [2, 2], auto_pad = "{mode}"> (x, w)', "float[N,3,5,6] x",
             "float[N,2,10,12] y", opset=opset, weights={"w": numbers(3, 2, 3, 3)}, kinds=("ConvTranspose", "Slice"))
        for mode in ("SAME_UPPER", "SAME_LOWER")
        for opset in (9, 13)
    ),
    Case("deconvolution-padding", "an output shape",
         "y = ConvTranspose <strides = [2, 2], output_shape = [10, 11]> (x, w)", "float[N,3,5,6] x",
         "float[N,2,10,11] y", weights={"w": numbers(3, 2, 4, 3)}, kinds=("ConvTranspose", "Slice")),
    Case("deconvolution-groups", "two groups",
         "y = ConvTranspose <strides = [2, 2], group = 2> (x, w)", "float[N,4,5,6] x", "float[N,6,11,13] y",
         weights={"w": numbers(4, 3, 3, 3)}, kinds=("ConvTranspose",)),
    *(
        Case("concatenation-axis", f"along axis {axis}", f"a = Relu(x) y = Concat <axis = {axis}> (a, x, c)",
             "float[1,2,3,4] x", f"float[1,2,{8 if axis == 2 else 3},{4 if axis == 2 else 9}] y",
             weights={"c": numbers(1, 2, 2, 4) if axis == 2 else numbers(1, 2, 3, 1)},
             kinds=("Concat", "Relu", "Transpose"))
        for axis in (2, -1)
    ),
    Case("concatenation-axis", "rank 3", "a = Relu(x) y = Concat <axis = 2> (a, x)", "float[N,3,4] x",
         "float[N,3,8] y", kinds=("Concat", "Relu", "Reshape", "Transpose")),
    Case("concatenation-axis", "rank 3 along its channels", "a = Relu(x) y = Concat <axis = 1> (a, x)",
         "float[N,3,4] x", "float[N,6,4] y", kinds=("Concat", "Relu", "Reshape")),
    Case("concatenation-single", "one tensor", "a = Concat <axis = 1> (x) y = Relu(a)", "float[N,3,4,4] x",
         "float[N,3,4,4] y", kinds=("Relu",)),
    Case("resize-scales", "sizes",
         'y = Resize <mode = "nearest", nearest_mode = "floor", coordinate_transformation_mode = "asymmetric">'
         " (x, , , s)", "float[1,3,4,5] x", "float[1,3,8,15] y", weights={"s": integers(1, 3, 8, 15)},
         kinds=("Resize",)),
    Case("resize-scales", "sizes of some axes", 'y = Resize <mode = "linear", axes = [2, 3]> (x, , , s)',
         "float[1,3,4,5] x", "float[1,3,8,15] y", opset=18, weights={"s": integers(8, 15)}, kinds=("Resize",)),
    Case("resize-scales", "sizes that are computed",
         'd = Shape(x) h = Slice(d, zero, two) s = Concat <axis = 0> (h, wanted) y = Resize <mode = "linear">'
         " (x, none, none, s)", "float[1,3,4,5] x", "float[1,3,8,10] y", opset=11,
         weights={"zero": integers(0), "two": integers(2), "wanted": integers(8, 10), "none": floats()},
         kinds=("Resize",)),
    *(
        Case("resize-sampling", mode,
             f'y = Resize <mode = "nearest", coordinate_transformation_mode = "half_pixel", nearest_mode = "{mode}">'
             " (x, , k)", "float[1,3,4,5] x", "float[1,3,12,20] y", weights={"k": floats(1, 1, 3, 4)},
             kinds=("Resize",))
        for mode in ("round_prefer_floor", "round_prefer_ceil")
    ),
    Case("clip-bounds", "no upper bound", "y = Clip(x, low)", N_2_12_12, "float[N,2,12,12] y", weights=BOUNDS,
         kinds=("Relu",)),
    Case("clip-bounds", "a minimum of a ReLU", "r = Relu(x) y = Min(high, r)", N_2_12_12, "float[N,2,12,12] y",
         weights=BOUNDS, kinds=("Clip",)),
    Case("clip-bounds", "a minimum of a maximum", "r = Max(x, low) y = Min(r, high)", N_2_12_12,
         "float[N,2,12,12] y", weights=BOUNDS, kinds=("Clip",)),
    Case("clip-bounds", "a maximum of a minimum", "r = Min(x, high) y = Max(r, low)", N_2_12_12,
         "float[N,2,12,12] y", weights=BOUNDS, kinds=("Clip",)),
    Case("clip-bounds", "a maximum with 0", "y = Max(low, x)", N_2_12_12, "float[N,2,12,12] y", weights=BOUNDS,
         kinds=("Relu",)),
    *(
        Case("clip-bounds", f"attributes {low} to {high}", f"y = Clip <min = {low}, max = {high}> (x)", N_2_12_12,
             "float[N,2,12,12] y", opset=10, kinds=("BatchNormalization", "Clip"))
        for low, high in ((-1.0, 1.0), (0.0, 0.3), (-2.0, 300.0))
    ),
    Case("clip-bounds", "one lower bound", "y = Clip <min = -1.5> (x)", N_2_12_12, "float[N,2,12,12] y", opset=10,
         kinds=("BatchNormalization", "Relu")),
    Case("clip-bounds", "one upper bound", "y = Clip(x, , high)", N_2_12_12, "float[N,2,12,12] y", weights=BOUNDS,
         kinds=("BatchNormalization", "Relu")),
    Case("rank-four", "softmax", "y = Softmax <axis = 1> (x)", "float[N,5] x", "float[N,5] y", opset=11,
         kinds=("Reshape", "Softmax")),
    Case("rank-four", "softmax of rank 3", "y = Softmax <axis = -2> (x)", "float[N,5,3] x", "float[N,5,3] y",
         kinds=("Reshape", "Softmax")),
    Case("rank-four", "a sum with a constant", "y = Add(c, x)", "float[N,5,3] x", "float[N,5,3] y",
         weights={"c": numbers(3)}, kinds=("Add", "Reshape")),
    Case("rank-four", "a chain", "a = Relu(x) y = Mul(a, x)", "float[N,5,3] x", "float[N,5,3] y",
         kinds=("Mul", "Relu", "Reshape")),
    Case("hard-swish", "hard sigmoid", "y = HardSigmoid <alpha = 0.3, beta = 0.4> (x)", N_2_12_12,
         "float[N,2,12,12] y", kinds=("BatchNormalization", "Clip")),
    Case("hard-swish", "hard swish", "y = HardSwish(x)", N_2_12_12, "float[N,2,12,12] y", opset=14,
         kinds=("BatchNormalization", "Clip", "Mul")),
    Case("strided-slice-convolution", "both axes", "y = Slice(x, starts, ends, axes, steps)", N_2_12_12,
         "float[N,2,6,4] y",
         weights={"starts": integers(1, -11), "ends": integers(100, 2**62), "axes": integers(2, -1),
                  "steps": integers(2, 3)}, kinds=("Conv",)),
    *(
        Case("constant-scale", f"{op} with {name}", f"y = {op}({operands})", N_2_12_12, "float[N,2,12,12] y",
             weights={"c": constant}, kinds=("BatchNormalization",))
        for name, constant in (("a number", np.float32(3).reshape(())), ("channels", 1 + numbers(2, 1, 1) ** 2))
        for op, operands in (("Add", "c, x"), ("Sub", "x, c"), ("Sub", "c, x"), ("Mul", "x, c"), ("Div", "x, c"))
    ),
    Case("constant-scale", "negation", "y = Neg(x)", N_2_12_12, "float[N,2,12,12] y", kinds=("BatchNormalization",)),
    *(
        Case("power-products", f"to the power {power}", "y = Pow(x, p)", "float[N,5] x", "float[N,5] y",
             weights={"p": floats(power)}, kinds=("Mul",))
        for power in (2, 3, 4)
    ),
    *(
        Case("depth-to-space", mode, f'y = DepthToSpace <blocksize = 2, mode = "{mode}"> (x)', "float[N,12,4,5] x",
             "float[N,3,8,10] y", kinds=("ConvTranspose",))
        for mode in ("CRD", "DCR")
    ),
    *(
        Case("depth-to-space", f"{mode} as exported",
             f"a = Reshape(x, s) b = Transpose <perm = [{order}]> (a) y = Reshape(b, t)", "float[N,18,4,5] x",
             "float[N,2,12,15] y", weights={"s": integers(-1, *split, 4, 5), "t": integers(-1, 2, 12, 15)},
             kinds=("ConvTranspose",))
        for mode, order, split in (("CRD", "0, 1, 4, 2, 5, 3", (2, 3, 3)), ("DCR", "0, 3, 4, 1, 5, 2", (3, 3, 2)))
    ),
    Case("space-to-depth", "blocks of 3", "y = SpaceToDepth <blocksize = 3> (x)", "float[N,2,6,9] x",
         "float[N,18,2,3] y", kinds=("Conv",)),
    *(
        Case("softmax-split", f"{name} in opset {opset}", f"y = Softmax <axis = {axis}> (x)", f"float[N,{extents}] x",
             f"float[N,{extents}] y", opset=opset, kinds=("Concat", "Slice", "Softmax", *more))
        for name, axis, extents, opset, more in (
            ("channels before W", 3, "3,1,1100", 13, ()),
            ("rows before W", -1, "1,3,1025", 13, ("Transpose",)),
            ("more rows than channels before W", -1, "2,3,1100", 13, ("Transpose",)),
            ("more channels than rows before W", -1, "4,2,1100", 13, ("Transpose",)),
            ("sixteen places of channels", 1, "1100,2,8", 13, ("Transpose",)),
            ("columns behind the channels", 1, "1100,1,5", 13, ("Transpose",)),
            ("rows between channels and columns", 2, "2,1100,3", 13, ("Transpose",)),
            ("the longest axis", 2, "2,8192,1", 13, ("Transpose",)),
            ("rows and columns of which one is single", 2, "3,1,1100", 12, ()),
            ("slices with attributes", 2, "4,1100,1", 9, ("Transpose",)),
        )
    ),
]  # fmt: skip

UNCHANGED = [
    Case("average-pool-cascade", "unknown extents", "y = GlobalAveragePool(x)", "float[N,3,H,W] x",
         "float[N,3,1,1] y"),
    Case("average-pool-cascade", "a large prime", "y = GlobalAveragePool(x)", "float[N,3,37,4] x", "float[N,3,1,1] y"),
    Case("average-pool-cascade", "a small window", "y = AveragePool <kernel_shape = [7, 7]> (x)", "float[N,3,7,7] x",
         "float[N,3,1,1] y"),
    Case("average-pool-cascade", "another axis", "y = ReduceMean <axes = [1]> (x)", "float[N,3,7,7] x",
         "float[N,1,7,7] y"),
    Case("max-pool-cascade", "half a padding", "y = MaxPool <kernel_shape = [9, 9], pads = [4, 4, 0, 0]> (x)",
         "float[N,3,20,20] x", "float[N,3,16,16] y"),
    Case("max-pool-cascade", "indices", "y, i = MaxPool <kernel_shape = [9, 9]> (x)", "float[N,3,20,20] x",
         "float[N,3,12,12] y"),
    Case("gemm-convolution", "a computed matrix", "w = Relu(x) y = Gemm <transB = 1> (x, w)", "float[3,3] x",
         "float[3,3] y"),
    Case("gemm-convolution", "a bias that is none", "y = Gemm (x, w, c)", "float[2,6] x", "float[2,4] y",
         weights={"w": numbers(6, 4), "c": numbers(2, 4)}),
    Case("deconvolution-padding", "none", "y = ConvTranspose <strides = [2, 2]> (x, w)", "float[N,3,5,6] x",
         "float[N,2,11,13] y", weights={"w": numbers(3, 2, 3, 3)}),
    Case("deconvolution-padding", "an output beyond the full one",
         "y = ConvTranspose <strides = [2, 2], output_padding = [1, 1]> (x, w)", "float[N,3,5,6] x",
         "float[N,2,12,14] y", weights={"w": numbers(3, 2, 3, 3)}),
    Case("deconvolution-groups", "one group", "y = ConvTranspose (x, w)", "float[N,3,5,6] x", "float[N,2,7,8] y",
         weights={"w": numbers(3, 2, 3, 3)}),
    Case("concatenation-axis", "along the channels", "a = Relu(x) y = Concat <axis = 1> (a, x)", "float[N,2,3,4] x",
         "float[N,4,3,4] y"),
    Case("concatenation-axis", "along the batch", "a = Relu(x) y = Concat <axis = 0> (a, x)", "float[N,2,3,4] x",
         "float[M,2,3,4] y"),
    Case("concatenation-single", "an output", "y = Concat <axis = 1> (x)", "float[N,3,4,4] x", "float[N,3,4,4] y"),
    Case("resize-scales", "no whole multiple", 'y = Resize <mode = "linear"> (x, , , s)', "float[1,3,4,5] x",
         "float[1,3,8,7] y", weights={"s": integers(1, 3, 8, 7)}),
    Case("resize-scales", "scales that are given", 'y = Resize <mode = "linear"> (x, , k)', "float[1,3,4,5] x",
         "float[1,3,8,10] y", weights={"k": floats(1, 1, 2, 2)}),
    Case("resize-sampling", "a broken scale",
         'y = Resize <mode = "nearest", nearest_mode = "round_prefer_floor"> (x, , k)', "float[1,3,1,1] x",
         "float[1,3,4,4] y", weights={"k": floats(1, 1, 4.9, 4.9)}),
    Case("clip-bounds", "ReLU6", "y = Clip(x, low, high)", N_2_12_12, "float[N,2,12,12] y", weights=BOUNDS),
    Case("clip-bounds", "a minimum", "y = Min(x, high)", N_2_12_12, "float[N,2,12,12] y", weights=BOUNDS),
    Case("rank-four", "rank 4", "y = Softmax <axis = 1> (x)", "float[N,5,1,1] x", "float[N,5,1,1] y"),
    Case("rank-four", "a softmax over two axes", "y = Softmax <axis = 1> (x)", "float[N,5,3] x", "float[N,5,3] y",
         opset=11),
    Case("rank-four", "a softmax over the batch", "y = Softmax <axis = 0> (x)", "float[N,5] x", "float[N,5] y"),
    Case("hard-swish", "rank 2", "y = HardSigmoid(x)", "float[N,5] x", "float[N,5] y"),
    Case("strided-slice-convolution", "an end before the end", "y = Slice(x, starts, ends, axes, steps)", N_2_12_12,
         "float[N,2,3,12] y", weights={"starts": integers(0), "ends": integers(6), "axes": integers(2),
                                       "steps": integers(2)}),
    Case("strided-slice-convolution", "channels", "y = Slice(x, starts, ends, axes, steps)", N_2_12_12,
         "float[N,1,12,12] y", weights={"starts": integers(0), "ends": integers(6), "axes": integers(1),
                                        "steps": integers(2)}),
    Case("constant-scale", "a constant image", "y = Add(x, c)", N_2_12_12, "float[N,2,12,12] y",
         weights={"c": numbers(12, 12)}),
    Case("constant-scale", "a division of a constant", "y = Div(c, x)", N_2_12_12, "float[N,2,12,12] y",
         weights={"c": np.float32(3).reshape(())}),
    Case("depth-to-space", "another order", "a = Reshape(x, s) b = Transpose <perm = [0, 1, 4, 3, 5, 2]> (a)"
         " y = Reshape(b, t)", "float[N,18,4,5] x", "float[N,2,12,15] y",
         weights={"s": integers(-1, 2, 3, 3, 4, 5), "t": integers(-1, 2, 12, 15)}),
    Case("space-to-depth", "unknown channels", "y = SpaceToDepth <blocksize = 3> (x)", "float[N,C,6,9] x",
         "float[N,D,2,3] y"),
    Case("power-products", "a root", "y = Pow(x, p)", "float[N,5] x", "float[N,5] y", weights={"p": floats(0.5)}),
    *(
        Case("softmax-split", name, f"y = Softmax <axis = {axis}> (x)", f"float[{shape}] x", f"float[{shape}] y",
             opset=opset)
        for name, axis, shape, opset in (
            ("an axis that all positions share", 3, "N,3,2,1024", 13),
            ("an axis that is too long", 3, "N,3,1,8193", 13),
            ("one position", 1, "N,1100,1,1", 13),
            ("too many positions", 3, "N,17,1,1100", 13),
            ("unknown positions", 3, "N,C,1,1100", 13),
            ("an unknown axis", 3, "N,3,1,W", 13),
            ("rank 3", 2, "N,3,1100", 13),
            ("the batch", 0, "4,3,1,1100", 13),
            ("rows and columns together", 2, "N,3,1100,2", 12),
            ("everything from the channels on", 1, "N,1100,1,3", 12),
            ("the batch and columns", 0, "4,1,1,1100", 12),
        )
    ),
]  # fmt: skip
