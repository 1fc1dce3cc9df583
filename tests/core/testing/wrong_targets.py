"""Targets with one fault each, the test of the kit that has to find it, and what its message has to say."""

from collections.abc import Sequence

import attrs
from tests.core.testing import acme_npu, acme_segments, wrong_integers, wrong_kernels
from tests.core.testing import wrong_declarations as wrong
from tests.core.testing.acme_npu import ARITHMETIC, CHW8, FORMATS, LINES, MANUAL, POOLS, TARGET

from dryfit.network.data_types import DataType
from dryfit.target.checks import each, parameter
from dryfit.target.cost import CostEstimate
from dryfit.target.fusions import Fusion

COMPUTES = "test_a_kernel_computes_what_its_layers_mean"
ENGINE = "test_an_engine_computes_what_the_network_means"
SURVIVES = "test_a_tensor_survives_its_format"
AT_ITS_LIMITS = "test_a_rule_decides_at_its_limits_as_it_says"
IN_A_LAYER = "test_a_layer_at_a_limit_is_decided_as_the_rule_says"
SEGMENT = "test_a_compiled_segment_computes_what_its_layers_mean"
WHOLE = "test_supported_layers_stay_on_the_device"
FALLBACK = "test_a_refused_layer_needs_fallback"
DECLARES = "test_a_network_is_computed_as_the_target_declares"
USES = "test_a_network_is_run_by_the_kernels_that_the_target_brings"
PLAN = "test_the_memory_of_a_plan_adds_up"
BUILDS = (ENGINE, WHOLE, FALLBACK, PLAN, DECLARES)
COST = "test_a_cost_estimate_says_on_what_it_rests"
INTEGER = "test_an_integer_operator_gives_the_codes_of_its_method"
INTEGER_NETWORK = "test_an_integer_network_gives_the_codes_of_its_method"
EXPORT = "test_an_exported_segment_has_the_same_bytes_each_time"


@attrs.frozen(eq=False)
class Wrong:
    """A target with one fault.

    Attributes:
        fault: in words.
        test: the test that has to fail.
        message: what a failure of it has to say.
        declarations: name of a declaration to what stands there in place of the sound target's.
        fields: other fields of the record that are changed.
        also: tests that cannot but fail too, as they look at the same thing from farther away.
        perhaps: tests that fail or not, as it happens: a kernel overwrites what lies beside its arrays by chance.
        crashes: whether the fault ends the process that it runs in, at least with guard pages around engines.
    """

    fault: str
    test: str
    message: str
    declarations: dict[str, object] = attrs.field(factory=dict)
    fields: dict[str, object] = attrs.field(factory=dict)
    also: Sequence[str] = ()
    perhaps: Sequence[str] = ()
    crashes: bool = False

    def target(self, monkeypatch):
        """The record, whose declarations stand in this module until the test is over."""
        places = {}
        for name, value in self.declarations.items():
            monkeypatch.setattr(f"{__name__}.OTHER_{name}", value, raising=False)
            places[f"{name}_at"] = f"{__name__}:OTHER_{name}"
        return attrs.evolve(TARGET, **places, **self.fields)


def segments(**declarations):
    """A sound compiler and loader, or what is given in place of one of them."""
    sound = {"compile_segment": acme_segments.compile_segment, "load_segment": acme_segments.load_segment}
    return {**sound, **declarations}


def _kernels(kernel, test, message, also=(ENGINE,), **more):
    return Wrong(f"the kernel {kernel.name}", test, message, {"kernels": (kernel,)}, also=also, **more)


def integers(kernel, fault, message="codes differ, by", **more):
    """A device that computes the convolutions of TFLite models, with a kernel for them."""
    declarations = {**wrong_integers.DECLARATIONS, "kernels": (kernel,)}
    return Wrong(fault, INTEGER, message, declarations, wrong_integers.FIELDS, **{"also": (INTEGER_NETWORK,), **more})


_UNFUSED = {"fusions": (Fusion("elementwise-activation", ["elementwise", "activation"], source=MANUAL),)}

DECLARATION = [
    Wrong(
        "nothing is said of what is simulated",
        "test_the_device_and_its_platforms_have_names",
        "`simulated` is empty",
        fields={"simulated": ""},
    ),
    Wrong(
        "a software range that no version is in",
        "test_each_platform_has_software_within_its_range",
        "platform 'board-1' has none of the software versions",
        fields={"platforms": [attrs.evolve(TARGET.platforms[0], software=((8, 0), None)), TARGET.platforms[1]]},
    ),
    Wrong(
        "a default precision that is none of the precisions",
        "test_the_precisions_contain_the_default",
        "the default precision BF16 is not one of the precisions",
        fields={"default_precision": DataType.BF16},
        also=("test_some_network_can_be_made_for_the_target",),
    ),
    Wrong(
        "a cost function that is no function",
        "test_every_declaration_can_be_loaded",
        "found CostEstimate; allowed: a function",
        {"estimate_cost": CostEstimate(1.0, 1, 1, "a guess", MANUAL)},
    ),
    Wrong(
        "a fusion of a kind that the device does not have",
        "test_a_fusion_joins_layers_that_the_device_has",
        "fusion c-g: it joins 'gather', a layer kind that the device does not have",
        {"fusions": (Fusion("c-g", ["convolution", "gather"], source=MANUAL),)},
    ),
    Wrong(
        "a fusion without a source",
        "test_a_fusion_joins_layers_that_the_device_has",
        "fusion c-a: `source` is empty",
        {"fusions": (Fusion("c-a", ["convolution", "activation"]),)},
    ),
    *(
        Wrong(f"a kernel, {message}", "test_a_kernel_is_declared_whole", message, {"kernels": kernels}, also=also)
        for kernels, message, also in (
            ((wrong_kernels.NAMELESS,), "its name is not that of its package, a dot, and what it does", ()),
            ((wrong_kernels.OF_THE_HOST,), "a kernel of the host has its name", (COMPUTES, *BUILDS, USES)),
            ((wrong_kernels.OF_NO_KIND,), "it serves 'activaton', which is not a layer kind", ()),
            ((wrong_kernels.OF_NO_TYPE,), "it serves no data type", ()),
            ((wrong_kernels.OF_ANOTHER_PRECISION,), "it is never called: it serves INT8", ()),
            ((acme_npu.relu, acme_npu.relu), "two kernels of the target have its name", (COMPUTES, *BUILDS, USES)),
        )
    ),
]

LIMIT = [
    Wrong(
        "a limit that is one off from its words",
        AT_ITS_LIMITS,
        "stride_nd 7 is refused, and its text says: stride_nd must be 1 to 7",
        {"limits": wrong.limits_with(each("stride_nd", wrong.OneOff()))},
        also=(IN_A_LAYER,),
    ),
    Wrong(
        "a limit in no words",
        AT_ITS_LIMITS,
        "the message must contain the allowed value",
        {"limits": wrong.limits_with(parameter("num_output_maps", wrong.Wordless(1, 64)))},
        also=(IN_A_LAYER,),
    ),
    Wrong(
        "a finding without values",
        "test_any_layer_gets_a_verdict",
        "a violation of acme_npu.more0 has no actual",
        {"limits": wrong.limits_with(wrong.tells_no_value)},
    ),
    Wrong(
        "a rule without a source",
        "test_a_rule_can_be_understood_and_can_hold",
        "`source` is empty",
        {"limits": acme_npu.with_rule(source=" ")},
    ),
    Wrong(
        "a rule that raises",
        "test_any_layer_gets_a_verdict",
        "limit rule acme_npu.convolution.kernel could not be evaluated",
        {"limits": acme_npu.with_rule(check=acme_npu.raises)},
    ),
]

FORMAT = [
    Wrong(
        fault,
        SURVIVES,
        message,
        {"input_formats": {**FORMATS, DataType.HALF: (wrong.format_of(cls), CHW8, LINES)}},
    )
    for cls, fault, message in (
        (wrong.PacksTheNeighbours, "pack reads what lies beside the tensor", "pack reads beside the tensor"),
        (wrong.UnpacksPadding, "unpack reads padding", "unpack reads padding"),
        (wrong.UnpacksShifted, "unpack is shifted", "unpack does not give back what was packed"),
        (acme_npu.Transposed, "strides of another order", "does not lie at"),
    )
]

POOL = [
    Wrong(
        "a pool that refuses its own default",
        "test_a_memory_pool_takes_its_own_defaults",
        "it refuses its own default for 'first', 786432 bytes",
        {"memory_pools": [attrs.evolve(POOLS[0], default_bytes={"": 3 << 18})]},
    ),
]

NUMBERS = [
    Wrong(
        "an accumulator that is narrower than the type",
        "test_a_precision_says_how_it_computes",
        "FP32: its accumulator FP16 is narrower",
        {
            "arithmetic": {
                **ARITHMETIC,
                DataType.FLOAT: attrs.evolve(ARITHMETIC[DataType.FLOAT], accumulator=DataType.HALF),
            }
        },
    ),
]

KERNEL = [
    _kernels(wrong_kernels.wrong_at_the_edge, COMPUTES, "from the reference, whose largest magnitude is"),
    _kernels(wrong_kernels.writes_its_input, COMPUTES, "it writes to its input x", also=()),
    _kernels(wrong_kernels.ignores_strides, COMPUTES, "in acme.dense_only"),
    _kernels(wrong_kernels.writes_beyond_the_output, COMPUTES, "it writes beside its output", also=()),
    _kernels(
        wrong_kernels.writes_beyond_the_workspace,
        COMPUTES,
        "it writes beyond the workspace",
        also=(),
        perhaps=(*BUILDS, DECLARES, USES),
        crashes=True,
    ),
    _kernels(wrong_kernels.differs_each_time, COMPUTES, "has other bits when it is run a second time", also=()),
    _kernels(wrong_kernels.differs_by_threads, COMPUTES, "has other bits when it is run with 2 threads"),
    _kernels(wrong_kernels.reads_beside_its_input, COMPUTES, "differs by nan"),
    attrs.evolve(
        _kernels(wrong_kernels.forgets_the_fused_layer, COMPUTES, "differs by", also=()),
        declarations={"kernels": (wrong_kernels.forgets_the_fused_layer,), **_UNFUSED},
    ),
    _kernels(
        wrong_kernels.cannot_be_bound,
        COMPUTES,
        "RuntimeError: the board is on fire at",
    ),
    _kernels(
        wrong_kernels.packed_behind, COMPUTES, "it writes beside its output", also=(), perhaps=(*BUILDS, DECLARES, USES)
    ),
    _kernels(
        wrong_kernels.packed_before, COMPUTES, "it writes beside its output", also=(), perhaps=(*BUILDS, DECLARES, USES)
    ),
    _kernels(wrong_kernels.packed_input, COMPUTES, "it writes to its input x in LINES", also=()),
    _kernels(
        wrong_kernels.packed_far,
        COMPUTES,
        "SIGSEGV while this ran: acme.packed_far for",
        also=(),
        perhaps=(*BUILDS, DECLARES, USES),
        crashes=True,
    ),
    _kernels(wrong_kernels.packs_something_else_each_time, COMPUTES, "packing the weights twice gives two results"),
    _kernels(wrong_kernels.packs_a_list, COMPUTES, "the packed weight 'n' is list, not a plain array"),
]

INTEGERS = [
    integers(
        wrong_integers.rounds_ties_to_even,
        "ties go to the even code",
        "tflite-INT8: convolution of INT8",
        also=(),
        perhaps=(INTEGER_NETWORK,),  # random sums are seldom ties
    ),
    integers(wrong_integers.forgets_zero_points, "zero points of inputs are forgotten"),
    integers(wrong_integers.forgets_channels, "all channels have the first one's scale"),
    integers(wrong_integers.forgets_limits, "a fused activation is forgotten"),
    integers(wrong_integers.forgets_the_lowest_code, "the lowest code is never given", "by 1 at most"),
]

SEGMENTS = [
    Wrong(
        "a compiler that gives another program each time",
        SEGMENT,
        "compiling it twice gives two programs",
        segments(compile_segment=acme_segments.compile_anew),
        also=(ENGINE,),
    ),
    Wrong(
        "a loader that makes something of anything",
        SEGMENT,
        "the loader takes an empty program without an error, and makes Loaded of it",
        segments(load_segment=acme_segments.load_anything),
    ),
    Wrong(
        "a loader whose segment lies",
        SEGMENT,
        "from the reference, whose largest magnitude is",
        segments(load_segment=acme_segments.load_inexact),
        also=(ENGINE, FALLBACK),
    ),
    Wrong(
        "an exporter that writes other bytes each time",
        EXPORT,
        "two builds of the same network give other bytes",
        {"export_segment": acme_segments.export_anew},
    ),
    Wrong(
        "an exporter that gives text",
        EXPORT,
        "A target's exporter must return bytes (found str)",
        {"export_segment": acme_segments.export_text},
    ),
    Wrong("a cost of nothing", COST, "the layers move 0 bytes", {"estimate_cost": wrong.cost_of_nothing}),
    Wrong("a cost without a source", COST, "`source` is empty", {"estimate_cost": wrong.cost_without_source}),
    Wrong(
        "a cost below zero",
        COST,
        "The numbers of a cost estimate must be finite and at least 0",
        {"estimate_cost": wrong.cost_below_zero},
    ),
]

COMPUTATION = [
    Wrong(
        "a note that promotes a layer to a type that the device does not have",
        DECLARES,
        "would be computed in BF16",
        {"limits": wrong.promoting_limits(DataType.BF16)},
        also=BUILDS,
    ),
    Wrong(
        "formats that leave out a type that the device computes in",
        DECLARES,
        "listed for FP16: none",
        {"input_formats": {DataType.FLOAT: FORMATS[DataType.FLOAT]}},
    ),
    _kernels(wrong_kernels.serves_no_layer_of_an_engine, USES, "the target brings acme.first_only", also=()),
]

ALL = [*DECLARATION, *LIMIT, *FORMAT, *POOL, *NUMBERS, *KERNEL, *INTEGERS, *SEGMENTS, *COMPUTATION]

HASHING = attrs.evolve(TARGET, kernels_at="tests.core.testing.wrong_kernels:HASHING")
"""Packs what another process packs otherwise."""
