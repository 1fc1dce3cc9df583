"""Layers of transformers: attention, rotary position embedding, and the update of a cache of keys and values."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import numpy as np

from dryfit.network.data_types import DataType
from dryfit.network.layer import Inputs, LayerOwner, Specs, layer_kind
from dryfit.network.layers.composite import CompositeLayer, Parts
from dryfit.network.layers.elementwise import Elementwise, ElementWiseOperation, Select
from dryfit.network.layers.indexing import Gather, Scatter, ScatterMode
from dryfit.network.layers.matrix import MatrixMultiply, MatrixOperation
from dryfit.network.layers.movement import Concatenation
from dryfit.network.layers.normalization import Softmax
from dryfit.network.layers.quantization import Cast, Dequantize, Quantize
from dryfit.network.layers.shape_inference import check_axis, check_index_type, check_same_types, merged_extent
from dryfit.network.layers.slice import Slice
from dryfit.network.tensor import Shape, Tensor, TensorSpec

QUERY, KEY, VALUE, MASK, SCALE = range(5)
"""Inputs of an attention."""


class AttentionNormalizationOp(enum.Enum):
    """What turns scores into weights of an attention; TensorRT's `AttentionNormalizationOp`."""

    NONE = 0
    SOFTMAX = 1


class CausalMaskKind(enum.Enum):
    """Which positions a causal attention sees; the causal kinds of TensorRT 11's `add_attention_v2`.

    UPPER_LEFT: query i sees keys 0 to i. LOWER_RIGHT: the last query sees all keys, the one before it all but the last,
    and so on. Both are equal for as many queries as keys. The values of TensorRT's enumeration are not documented in
    our source; these are our choice.
    """

    NONE = 0
    UPPER_LEFT = 1
    LOWER_RIGHT = 2


@layer_kind("attention")
class Attention(CompositeLayer):
    """`norm(query @ transpose(key) + mask) @ value` for each head; TensorRT's composite `IAttention`.

    Inputs: 0 query `[batch, query heads, queries, depth]`; 1 key `[batch, heads, keys, depth]`; 2 value `[batch, heads,
    keys, columns]`; optionally 3, a mask of rank 4 that broadcasts to `[batch, query heads, queries, keys]`, and 4, the
    scale of `normalization_quantize_to_type`, a scalar. With fewer heads in key and value than in query (grouped-query
    attention), each of them serves as many adjacent query heads.

    A BOOL mask keeps the positions that are true; a mask of the query's type is added to the scores. The layer does not
    scale the scores: multiply the query by `1 / sqrt(depth)` first. A query that sees no key gives NaN, as a softmax of
    minus infinity does; with NONE, masked scores are 0.

    Attributes:
        norm_op: SOFTMAX over the keys, or NONE.
        causal_kind: positions that are masked in addition to the mask.
        decomposable: whether TensorRT may use several kernels if no fused kernel supports the layer. Kept, without
            effect: dryfit always decomposes the layer into matrix multiplications, a softmax and what they need.
        normalization_quantize_to_type: type to which the normalized scores are quantized with the scale of input 4,
            INT8 or FP8; FP32 for no quantization.

    Source: TensorRT 10.16 and 11 `IAttention`, whose documented facts are the members, their defaults, and that the
    layer is composed of matrix multiplications and a softmax. Inferred: that scores are not scaled, the meaning of BOOL
    and added masks and of their order of axes (ONNX `Attention` 23 has the same), and UPPER_LEFT for `causal`.
    """

    needs_real_numbers = True
    inputs_of_one_type = (QUERY, KEY, VALUE)

    norm_op: AttentionNormalizationOp = AttentionNormalizationOp.SOFTMAX
    causal_kind: CausalMaskKind = CausalMaskKind.NONE
    decomposable: bool = False
    normalization_quantize_to_type: DataType = DataType.FLOAT

    @property
    def causal(self) -> bool:
        """Whether a query sees no later key. Setting True selects `CausalMaskKind.UPPER_LEFT`, unless a kind is set."""
        return self.causal_kind is not CausalMaskKind.NONE

    @causal.setter
    def causal(self, causal: bool) -> None:
        if bool(causal) != self.causal:
            self.causal_kind = CausalMaskKind.UPPER_LEFT if causal else CausalMaskKind.NONE

    @property
    def mask(self) -> Tensor | None:
        """Input 3: a BOOL mask of the positions to keep, or a mask that is added; None for no mask."""
        return self.get_input(MASK)

    @mask.setter
    def mask(self, mask: Tensor | None) -> None:
        self.set_input(MASK, mask)

    @property
    def normalization_quantize_scale(self) -> Tensor | None:
        """Input 4: scale of the normalized scores; None if they are not quantized."""
        return self.get_input(SCALE)

    @normalization_quantize_scale.setter
    def normalization_quantize_scale(self, scale: Tensor | None) -> None:
        self.set_input(SCALE, scale)

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return `[batch, query heads, queries, columns]` in the query's type."""
        query, key, value = (self.required(inputs, index) for index in (QUERY, KEY, VALUE))
        for name, spec in (("query", query), ("key", key), ("value", value)):
            if spec.rank != 4:
                raise self.problem(
                    f"The {name} must have four axes",
                    found=spec.shape,
                    allowed="[batch, heads, sequence, depth]",
                    remedy="Add a shuffle layer that reshapes it",
                )
        if not check_same_types(self, query, key, value).is_floating_point or query.dtype.bits < 16:
            raise self.problem(
                "Query, key and value must be floating point",
                found=query.dtype.text,
                allowed="FP32, FP16, BF16",
                remedy="Add a cast or dequantize layer",
            )
        batch = merged_extent(self, query.shape[0], key.shape[0], "The batches of query and key")
        batch = merged_extent(self, batch, value.shape[0], "The batches of key and value")
        heads = merged_extent(self, key.shape[1], value.shape[1], "The heads of key and value")
        keys = merged_extent(self, key.shape[2], value.shape[2], "The sequences of key and value")
        merged_extent(self, query.shape[3], key.shape[3], "The depths of query and key")
        self._check_groups(query.shape, heads, value.shape[3])
        self._check_mask(inputs, query, (batch, *query.shape[1:3], keys))
        self._check_quantization(inputs)
        return [TensorSpec((batch, *query.shape[1:3], value.shape[3]), query.dtype)]

    def _check_groups(self, query: Shape, heads: int, columns: int) -> None:
        if query[1] == heads:
            return
        if min(query[1], heads) < 1 or query[1] % heads:
            raise self.problem(
                "The heads of the query must be a static multiple of those of key and value",
                found=f"{query[1]} and {heads}",
                remedy="Use equal numbers of heads, or groups of heads that are fixed",
            )
        if min(query[3], columns) < 0:
            raise self.problem(
                "With grouped heads, the last axis of query and value must be static",
                found=f"{query[3]} and {columns}",
                remedy="Use a fixed last dimension for query and value",
            )

    def _check_mask(self, inputs: Inputs, query: TensorSpec, scores: Shape) -> None:
        mask = inputs[MASK] if len(inputs) > MASK else None
        if mask is None:
            return
        if mask.dtype not in (DataType.BOOL, query.dtype):
            raise self.problem(
                "The mask has the wrong type",
                found=mask.dtype.text,
                allowed=f"BOOL or {query.dtype.text}",
                remedy="Add a cast layer before it",
            )
        if mask.rank != 4 or any(-1 not in (m, s) and m not in (1, s) for m, s in zip(mask.shape, scores, strict=True)):
            raise self.problem(
                "The mask must broadcast to the scores", found=mask.shape, allowed=scores, remedy="Reshape the mask"
            )

    def _check_quantization(self, inputs: Inputs) -> None:
        scale = inputs[SCALE] if len(inputs) > SCALE else None
        to_type = self.normalization_quantize_to_type
        if to_type not in (DataType.FLOAT, DataType.INT8, DataType.FP8):
            raise self.problem(
                "Normalized scores cannot be quantized to this type",
                found=to_type.text,
                allowed="INT8, FP8, or FP32 for no quantization",
                remedy="Set `normalization_quantize_to_type`",
            )
        if (scale is None) != (to_type is DataType.FLOAT):
            raise self.problem(
                "The scale and the type of the normalized scores must be set together",
                found=f"{to_type.text} {'without' if scale is None else 'with'} a scale",
                remedy="Set `normalization_quantize_scale` and `normalization_quantize_to_type`",
                is_mendable=True,
            )
        if scale is not None and (scale.shape not in ((), (1,)) or not scale.dtype.is_floating_point):
            raise self.problem(
                "The scale of the normalized scores must be a floating-point scalar",
                found=f"{scale.dtype.text} {scale.shape}",
                remedy="Connect a constant scalar",
            )

    def multiply_accumulates(self, specs: Specs) -> int:
        """Return the multiply-accumulates of both products; all pairs of query and key count."""
        query, key, value = (specs[self.connected_input(index).name] for index in (QUERY, KEY, VALUE))
        pairs = TensorSpec((*query.shape[:3], key.shape[2]), query.dtype).least_elements
        return pairs * (max(query.shape[3], 1) + max(value.shape[3], 1))

    def decompose(self, parts: Parts) -> Sequence[Tensor]:
        """Add two matrix multiplications with a softmax between them, masks as selects, and reshapes for groups."""
        query, key, value = (self.connected_input(index) for index in (QUERY, KEY, VALUE))
        heads, group_heads = query.shape[1], key.shape[1]
        is_grouped = heads != group_heads
        if is_grouped:
            query = parts.reshape("grouped query", query, (0, group_heads, -1, query.shape[3]))
        transposed = MatrixMultiply(op0=MatrixOperation.NONE, op1=MatrixOperation.TRANSPOSE)
        scores = parts.add("scores", transposed, query, key)
        if is_grouped:
            scores = parts.reshape("scores by head", scores, (0, heads, -1, 0))
        weights = self._weights(parts, self._masked(parts, scores))
        if is_grouped:
            weights = parts.reshape("weights by group", weights, (0, group_heads, -1, 0))
            output = parts.add("grouped result", MatrixMultiply(), weights, value)
            return [parts.reshape("", output, (0, heads, -1, value.shape[3]))]
        return [parts.add("", MatrixMultiply(), weights, value)]

    def _masked(self, parts: Parts, scores: Tensor) -> Tensor:
        hidden = -np.inf if self.norm_op is AttentionNormalizationOp.SOFTMAX else 0.0
        if self.mask is not None and self.mask.dtype is not DataType.BOOL:
            scores = parts.add("masked scores", Elementwise(op=ElementWiseOperation.SUM), scores, self.mask)
        elif self.mask is not None:
            scores = parts.add("masked scores", Select(), self.mask, scores, parts.scalar("hidden", hidden, scores))
        if not self.causal:
            return scores
        seen, other = self._causal_mask(parts, scores), parts.scalar("later", hidden, scores)
        return parts.add("causal scores", Select(), seen, scores, other)

    def _causal_mask(self, parts: Parts, scores: Tensor) -> Tensor:
        """The positions that a causal attention sees, `BOOL[1, 1, queries, keys]`."""
        queries, keys = scores.shape[2:]
        is_aligned_right = self.causal_kind is CausalMaskKind.LOWER_RIGHT
        if min(queries, keys) >= 0:
            first = keys - queries if is_aligned_right else 0
            return parts.constant("causal mask", np.tri(queries, keys, first, dtype=np.bool_)[None, None])
        extents = parts.extents("extents of the scores", scores)
        ends = parts.elements("queries and keys", extents, 2, 2)
        one = parts.constant("ones", np.ones(2, np.int64))
        shape = parts.add("extents of the mask", Concatenation(axis=0), one, ends)
        rows = parts.positions("rows", shape, 2, DataType.INT64)
        columns = parts.positions("columns", shape, 3, DataType.INT64)
        if is_aligned_right:
            lengths = [parts.elements(name, extents, axis, 1) for name, axis in (("keys", 3), ("queries", 2))]
            offset = parts.add("keys before", Elementwise(op=ElementWiseOperation.SUB), *lengths)
            offset = parts.reshape("offset", offset, (1, 1, 1, 1))
            rows = parts.add("last keys", Elementwise(op=ElementWiseOperation.SUM), rows, offset)
        following = parts.constant("one", np.ones((1, 1, 1, 1), np.int64))
        rows = parts.add("first hidden keys", Elementwise(op=ElementWiseOperation.SUM), rows, following)
        return parts.add("causal mask", Elementwise(op=ElementWiseOperation.GREATER), rows, columns)

    def _weights(self, parts: Parts, scores: Tensor) -> Tensor:
        if self.norm_op is AttentionNormalizationOp.SOFTMAX:
            scores = parts.add("softmax", Softmax(axes=1 << 3), scores)
        scale = self.normalization_quantize_scale
        if scale is None:
            return scores
        codes = parts.add("quantize", Quantize(to_type=self.normalization_quantize_to_type), scores, scale)
        return parts.add("dequantize", Dequantize(to_type=scores.dtype), codes, scale)


@layer_kind("rotary_embedding")
class RotaryEmbedding(CompositeLayer):
    """The input with its last axis rotated pair by pair, by an angle that depends on the position.

    Inputs: 0 the data `[batch, heads, sequence, depth]`; 1 and 2 the cosines and sines, `[positions, pairs]` with
    position ids and `[batch, sequence, pairs]` without; optionally 3, the position ids `[batch, sequence]`, integers.

    A pair (x, y) becomes `(x * cos - y * sin, x * sin + y * cos)`. There are `rotary_embedding_dim / 2` pairs; the
    elements after them are copied.

    Attributes:
        interleaved: whether a pair is two adjacent elements. Otherwise it is an element of the first half of the
            rotated ones and the corresponding element of the second half.
        rotary_embedding_dim: number of rotated elements, an even number; 0 for all.

    Source: TensorRT 10.16 `IRotaryEmbeddingLayer`: its parameters. The arithmetic and the shapes are those of ONNX
    `RotaryEmbedding` 23, which has the same parameters.
    """

    needs_real_numbers = True
    inputs_of_one_type = (0, 1, 2)

    interleaved: bool = False
    rotary_embedding_dim: int = 0

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the data's shape and type."""
        x, cos, sin = (self.required(inputs, index) for index in range(3))
        if x.rank != 4 or x.shape[3] < 0:
            raise self.problem(
                "The input must have four axes, and the last one must be static",
                found=x.shape,
                allowed="[batch, heads, sequence, depth]",
                remedy="Add a shuffle layer that reshapes it",
            )
        if not check_same_types(self, x, cos, sin).is_floating_point or x.dtype.bits < 16:
            raise self.problem(
                "The input must be floating point", found=x.dtype.text, remedy="Add a cast or dequantize layer"
            )
        rotated = self.rotated(x.shape)
        if not 0 < rotated <= x.shape[3] or rotated % 2:
            raise self.problem(
                "The number of rotated elements must be even and at most the extent of the last axis",
                found=rotated,
                allowed=f"2 to {x.shape[3]}",
                remedy="Set `rotary_embedding_dim`",
                is_mendable=True,
            )
        ids = inputs[3] if len(inputs) > 3 else None
        if ids is not None:
            check_index_type(self, ids, "The position ids input")
        steps = (x.shape[0], x.shape[2])
        # Whether there are position ids is said after the layer is added.
        self._check_shapes("position ids", () if ids is None else (ids,), steps)
        self._check_shapes("cosines and sines", (cos, sin), (*((-1,) if ids is not None else steps), rotated // 2))
        return [TensorSpec(x.shape, x.dtype)]

    def rotated(self, shape: Shape) -> int:
        """Return the number of rotated elements for an input of this shape."""
        return self.rotary_embedding_dim or shape[3]

    def _check_shapes(self, what: str, specs: Sequence[TensorSpec], expected: Shape) -> None:
        for spec in specs:
            if spec.rank != len(expected) or any(
                -1 not in (found, wanted) and found != wanted
                for found, wanted in zip(spec.shape, expected, strict=False)
            ):
                raise self.problem(
                    f"The shape of the {what} must match the input",
                    found=spec.shape,
                    allowed=expected,
                    remedy="Reshape them, set `rotary_embedding_dim`, or connect the position ids as input 3",
                    is_mendable=True,
                )

    def decompose(self, parts: Parts) -> Sequence[Tensor]:
        """Add slices of the pairs, four products with their difference and sum, and a concatenation."""
        x, cos, sin = (self.connected_input(index) for index in range(3))
        depth, count = x.shape[3], self.rotated(x.shape)
        ids = self.get_input(3)
        factors = []
        for name, table in (("cosines", cos), ("sines", sin)):
            factor = table if ids is None else parts.add(f"{name} of positions", Gather(axis=0), table, ids)
            factors.append(parts.reshape(name, factor, (0, 1, -1, count // 2)))
        cos, sin = factors
        stride, second = (2, 1) if self.interleaved else (1, count // 2)
        first, other = (
            parts.add(name, Slice(start=(start,), shape=(count // 2,), stride=(stride,), axes=(3,)), x)
            for name, start in (("first of pairs", 0), ("second of pairs", second))
        )
        halves = [
            self._rotated_half(parts, "rotated first", ElementWiseOperation.SUB, (first, cos), (other, sin)),
            self._rotated_half(parts, "rotated second", ElementWiseOperation.SUM, (first, sin), (other, cos)),
        ]
        if self.interleaved:
            halves = [
                parts.reshape(f"column {index}", half, (0, 0, 0, count // 2, 1)) for index, half in enumerate(halves)
            ]
            pairs = parts.add("rotated pairs", Concatenation(axis=4), *halves)
            if count == depth:
                return [parts.reshape("", pairs, (0, 0, 0, count))]
            halves = [parts.reshape("rotated", pairs, (0, 0, 0, count))]
        if count < depth:
            rest = Slice(start=(count,), shape=(depth - count,), stride=(1,), axes=(3,))
            halves.append(parts.add("rest", rest, x))
        return [parts.add("", Concatenation(axis=3), *halves)]

    @staticmethod
    def _rotated_half(
        parts: Parts, name: str, op: ElementWiseOperation, first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]
    ) -> Tensor:
        products = [
            parts.add(f"{name}, product {index}", Elementwise(op=ElementWiseOperation.PROD), *operands)
            for index, operands in enumerate((first, second))
        ]
        return parts.add(name, Elementwise(op=op), *products)


class KVCacheMode(enum.Enum):
    """Where a cache continues after its last position; TensorRT's `KVCacheMode`, and CIRCULAR, which is ONNX's."""

    LINEAR = 0
    CIRCULAR = 1


@layer_kind("kv_cache_update")
class KVCacheUpdate(CompositeLayer):
    """A cache with an update written to it: `cache[b, :, indices[b] + i] = update[b, :, i]`.

    Inputs: 0 the cache `[batch, heads, capacity, depth]`; 1 the update `[batch, heads, sequence, depth]`; 2 the first
    position of each batch element, integers of shape `[batch]`. A negative position counts from the end of the cache.
    With LINEAR, a position past the end of the cache is an error at run time.

    The output is a new tensor. TensorRT's output shares the memory of the cache (`Engine.get_aliased_input_tensor`);
    here the caller passes the array of the cache as `out` of `ExecutionContext.run` for the same effect.

    Attributes:
        cache_mode: LINEAR, or CIRCULAR, which continues at the start of the cache.
        axis: axis of the positions, after the first one.

    Source: TensorRT 10.16 `IKVCacheUpdateLayer`; ONNX `TensorScatter` 24, from which the arithmetic is inferred.
    """

    inputs_of_one_type = (0, 1)

    cache_mode: KVCacheMode = KVCacheMode.LINEAR
    axis: int = 2

    def infer_outputs(self, inputs: Inputs) -> Sequence[TensorSpec]:
        """Return the cache's shape and type."""
        cache, update, indices = (self.required(inputs, index) for index in range(3))
        check_same_types(self, cache, update)
        check_index_type(self, indices, "The positions input")
        check_axis(self, self.axis, cache.rank)
        if self.axis == 0 or cache.rank != update.rank:
            raise self.problem(
                "Cache and update must have the same rank, and `axis` must come after the batch",
                found=f"{cache.shape} and {update.shape}, axis {self.axis}",
                remedy="Reshape the update, or set `axis`",
            )
        for axis, (extent, count) in enumerate(zip(cache.shape, update.shape, strict=True)):
            if axis != self.axis:
                merged_extent(self, extent, count, f"The extents of cache and update along axis {axis}")
            elif -1 not in (extent, count) and count > extent:
                raise self.problem(
                    "The update must not be longer than the cache",
                    found=f"{count} positions",
                    allowed=f"at most {extent}",
                    remedy="Shorten the update, or use a larger cache",
                )
        if indices.rank != 1:
            raise self.problem(
                "There must be one position per batch element",
                found=indices.shape,
                allowed=(cache.shape[0],),
                remedy="Reshape the positions to a vector",
            )
        merged_extent(self, indices.shape[0], cache.shape[0], "The number of positions and the batch")
        return [TensorSpec(cache.shape, cache.dtype)]

    def decompose(self, parts: Parts) -> Sequence[Tensor]:
        """Add a scatter, and the layers that compute its indices."""
        cache, update, indices = (self.connected_input(index) for index in range(3))
        rank = len(cache.shape)
        steps = parts.positions("steps", parts.extents("extents of the update", update), self.axis, indices.dtype)
        starts = parts.reshape("starts", indices, (-1, *[1] * (rank - 1)))
        places = parts.add("positions", Elementwise(op=ElementWiseOperation.SUM), steps, starts)
        if self.cache_mode is KVCacheMode.CIRCULAR:
            capacity = parts.elements("capacity", parts.extents("extents of the cache", cache), self.axis, 1)
            if indices.dtype is not DataType.INT64:
                places = parts.add("positions as INT64", Cast(to_type=DataType.INT64), places)
            capacity = parts.reshape("capacity by axis", capacity, (1,) * rank)
            # TensorRT has no remainder: what is too much is a multiple of the capacity.
            laps = parts.add("laps", Elementwise(op=ElementWiseOperation.FLOOR_DIV), places, capacity)
            extra = parts.add("positions of laps", Elementwise(op=ElementWiseOperation.PROD), laps, capacity)
            places = parts.add("circular positions", Elementwise(op=ElementWiseOperation.SUB), places, extra)
        return [parts.add("", Scatter(mode=ScatterMode.ELEMENT, axis=self.axis), cache, places, update)]


class AddAttention:
    """The builder methods of the layers of transformers."""

    def add_attention(
        self: LayerOwner,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        norm_op: AttentionNormalizationOp = AttentionNormalizationOp.SOFTMAX,
        causal: bool = False,
    ) -> Attention:
        """Add an attention; TensorRT's `add_attention`. Set `mask` on the layer, and scale the query before it."""
        kind = CausalMaskKind.UPPER_LEFT if causal else CausalMaskKind.NONE
        return self.add_layer(Attention(norm_op=norm_op, causal_kind=kind), [query, key, value])

    def add_attention_v2(
        self: LayerOwner,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        norm_op: AttentionNormalizationOp,
        causal_kind: CausalMaskKind,
    ) -> Attention:
        """Add an attention with a kind of causal mask; TensorRT's `add_attention_v2` for padded inputs."""
        return self.add_layer(Attention(norm_op=norm_op, causal_kind=causal_kind), [query, key, value])

    def add_rotary_embedding(
        self: LayerOwner,
        input: Tensor,
        cos_cache: Tensor,
        sin_cache: Tensor,
        interleaved: bool = False,
        rotary_embedding_dim: int = 0,
    ) -> RotaryEmbedding:
        """Add a rotary embedding; TensorRT's `add_rotary_embedding`. Connect position ids as input 3."""
        layer = RotaryEmbedding(interleaved=interleaved, rotary_embedding_dim=rotary_embedding_dim)
        return self.add_layer(layer, [input, cos_cache, sin_cache], is_finished=False)

    def add_kv_cache_update(
        self: LayerOwner,
        cache: Tensor,
        update: Tensor,
        write_indices: Tensor,
        cache_mode: KVCacheMode = KVCacheMode.LINEAR,
    ) -> KVCacheUpdate:
        """Add the update of a cache; TensorRT's `add_kv_cache_update`."""
        return self.add_layer(KVCacheUpdate(cache_mode=cache_mode), [cache, update, write_indices])
