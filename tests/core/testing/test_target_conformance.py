"""The kit itself: a sound target passes it, and a deliberately wrong one fails at each level."""

import subprocess
import sys
from types import SimpleNamespace

import attrs
import pytest
from tests.core.testing import acme_npu
from tests.core.testing.acme_npu import CHW8, LIMITS, MANUAL, PLACE, POOLS, TARGET
from tests.core.testing.kit_runner import Failed, Skipped, failures, kit_of

import dryfit.testing
from dryfit.network.data_types import DataType
from dryfit.network.layers.activation import ActivationType
from dryfit.network.network import Network
from dryfit.target.arithmetic import Approximation
from dryfit.target.checks import each
from dryfit.target.formats import TensorFormat
from dryfit.target.limits import LimitTable, rule, rules
from dryfit.target.memory_pools import MemoryPool
from dryfit.target.power_mode import PowerMode
from dryfit.target.target import Platform, SegmentRules
from dryfit.testing import engine_checks, pool_checks, trial_networks
from dryfit.testing.target_conformance import TargetConformance


def outcomes(kit, test, folder=None):
    """The messages of the failures of one test of the kit, over all its cases."""
    return failures(kit, test.__name__, folder)


def declared(monkeypatch, **declarations):
    """The target with other declarations, such as `limits=...`."""
    places = {}
    for name, value in declarations.items():
        monkeypatch.setattr(acme_npu, f"OTHER_{name}", value, raising=False)
        places[f"{name}_at"] = f"{PLACE}:OTHER_{name}"
    return attrs.evolve(TARGET, **places)


# The record -----------------------------------------------------------------------------------------------------------

FIRST = TARGET.platforms[0]
MODES = (PowerMode("15W", 1e9, 1e9), PowerMode("LOW", 1e9, 1e9, aliases=["15w"]))
WRONG_NAMES = [
    ({"device": "acme npu"}, "the device name 'acme npu' is not upper-case"),
    ({"title": " "}, "`title` is empty"),
    ({"simulated": ""}, "`simulated` is empty"),
    ({"platforms": []}, "at least one platform is required"),
    ({"platforms": [FIRST, attrs.evolve(FIRST, name="BOARD-1")]}, "two platforms are called 'board-1'"),
    ({"platforms": [FIRST, attrs.evolve(FIRST, name="b", aliases=["board-1"])]}, "two platforms are called 'board-1'"),
    ({"platforms": [attrs.evolve(FIRST, family="")]}, "platform 'board-1': `family` is empty"),
    ({"platforms": [attrs.evolve(FIRST, cores=-1)]}, "has -1 cores"),
    ({"platforms": [attrs.evolve(FIRST, power_modes=MODES)]}, "'board-1': two power modes are called '15w'"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG_NAMES)
def test_wrong_names_fail(changes, message):
    kit = kit_of(attrs.evolve(TARGET, **changes))
    (failure,) = outcomes(kit, TargetConformance.test_the_device_and_its_platforms_have_names)
    assert message in failure


WRONG_SOFTWARE = [
    ({"software_versions": [(2, 0), (1, 0)]}, "must increase: 2.0, 1.0"),
    ({"platforms": [Platform("b", "f", "B", software=((3, 0), (2, 0)))]}, "the first software version 3.0 is after"),
    ({"platforms": [Platform("b", "f", "B", software=((9, 0), None))]}, "has none of the software versions"),
    ({"segment_rules": SegmentRules(max_segments={(1,): 0})}, "`max_segments` from 1 is 0"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG_SOFTWARE)
def test_wrong_software_ranges_fail(changes, message):
    kit = kit_of(attrs.evolve(TARGET, **changes))
    assert message in "".join(outcomes(kit, TargetConformance.test_each_platform_has_software_within_its_range))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"precisions": [DataType.FLOAT, DataType.FLOAT]}, "listed twice"),
        ({"precisions": ["FLOAT"], "default_precision": None}, "'FLOAT' is not a data type"),
        ({"default_precision": DataType.INT8}, "the default precision INT8 is not one of the precisions"),
    ],
)
def test_wrong_precisions_fail(changes, message):
    kit = kit_of(attrs.evolve(TARGET, **changes))
    assert message in "".join(outcomes(kit, TargetConformance.test_the_precisions_contain_the_default))


def test_a_declaration_that_cannot_be_loaded_fails_once_and_the_rest_is_skipped():
    kit = kit_of(attrs.evolve(TARGET, limits_at="acme_nowhere:LIMITS"))
    (failure,) = outcomes(kit, TargetConformance.test_every_declaration_can_be_loaded)
    assert "`limits` cannot be loaded: target ACME_NPU, limits_at = 'acme_nowhere:LIMITS'" in failure
    assert "No module named 'acme_nowhere'" in failure
    for argument in ("rule", "boundary", "kind", "kernel_case"):
        assert kit.cases_for(argument) == [("none", None)]
    assert outcomes(kit, TargetConformance.test_a_rule_can_be_understood_and_can_hold) == []


def test_a_level_is_a_kit_of_its_own_and_all_of_them_are_the_whole():
    levels = [getattr(dryfit.testing, name) for name in dryfit.testing.__all__ if name.startswith("Target")]
    whole = {name for name in dir(TargetConformance) if name.startswith("test_")}
    parts = {name for level in levels if level is not TargetConformance for name in dir(level)}
    assert all(issubclass(TargetConformance, level) for level in levels)
    assert whole == {name for name in parts if name.startswith("test_")}


def test_a_limit_table_of_another_device_fails(monkeypatch):
    kit = kit_of(declared(monkeypatch, limits=LimitTable("NPU", [])))
    assert "is of the device 'NPU'" in outcomes(kit, TargetConformance.test_every_declaration_can_be_loaded)[0]


INSTALLED = TargetConformance.test_the_target_is_installed_and_its_record_imports_nothing_heavy


def test_a_target_that_is_not_installed_fails():
    (failure,) = outcomes(kit_of(TARGET), INSTALLED)
    assert "no usable entry point of the group dryfit.targets names this record: Unknown device" in failure


def test_a_record_that_imports_numpy_fails(install):
    (failure,) = outcomes(kit_of(install(TARGET, f"{PLACE}:TARGET")), INSTALLED)
    assert f"importing {PLACE} loads numpy" in failure


def test_a_record_that_another_package_claims_too_fails(install):
    (failure,) = outcomes(kit_of(install(attrs.evolve(TARGET, device="DLA"))), INSTALLED)
    assert "the device DLA is another record's" in failure


# Limits ---------------------------------------------------------------------------------------------------------------

WRONG_RULES = [
    ({"text": ""}, "`text` is empty"),
    ({"source": " "}, "`source` is empty"),
    ({"parameter": ""}, "`parameter` is empty"),
    ({"remedy": ""}, "`remedy` is empty"),
    ({"severity": "error"}, "the severity 'error' is not one of violation, warning, note"),
    ({"fidelity": "sure"}, "the fidelity 'sure' is not one of documented, inferred, confirmed"),
    ({"id": "acme_npu.Convolution kernel"}, "the id is not acme_npu.word.word"),
    ({"kinds": {"convolutoin"}}, "it speaks of 'convolutoin', a layer kind that the device does not have"),
    ({"families": {"third"}}, "it holds on no platform and software version"),
    ({"since": (4,)}, "it holds on no platform and software version"),
    ({"precisions": {DataType.INT8}}, "it holds for INT8 only"),
]


@pytest.mark.parametrize(("changes", "message"), WRONG_RULES)
def test_a_rule_that_lacks_something_fails(changes, message, monkeypatch):
    kit = kit_of(declared(monkeypatch, limits=acme_npu.with_rule(**changes)))
    failures = outcomes(kit, TargetConformance.test_a_rule_can_be_understood_and_can_hold)
    assert len(failures) == 1
    assert message in failures[0]


@attrs.frozen
class Lying:
    """A constraint that is one off from its words."""

    text: str = "1 to 7"
    passing: tuple = (1, 7)
    failing: tuple = (0, 8)

    def holds(self, value):
        return 1 <= value < 7


def lying_target(monkeypatch):
    made = LimitTable(
        "ACME_NPU",
        rules("pooling", rule("window", each("window_size_nd", Lying()), source=MANUAL, remedy="Pool twice")),
        source=MANUAL,
    )
    return declared(monkeypatch, limits=made)


@pytest.mark.parametrize(
    "test",
    [
        TargetConformance.test_a_rule_decides_at_its_limits_as_it_says,
        TargetConformance.test_a_layer_at_a_limit_is_decided_as_the_rule_says,
    ],
)
def test_a_limit_that_is_one_off_from_its_words_fails(test, monkeypatch):
    (failure,) = outcomes(kit_of(lying_target(monkeypatch)), test)
    assert failure == ("acme_npu.window: window_size_nd 7 is refused, and its text says: window_size_nd must be 1 to 7")


def layers_with_inputs(count):
    network = Network("inputs")
    return network.add_concatenation(
        [network.add_input(f"x{index}", DataType.FLOAT, (1, 4, 8, 8)) for index in range(count)]
    )


def relu_whatever(value):
    network = Network("relu")
    return network.add_activation(network.add_input("x", DataType.FLOAT, (1, 4, 8, 8)), ActivationType.RELU)


AT_A_LIMIT = TargetConformance.test_a_layer_at_a_limit_is_decided_as_the_rule_says


def test_a_layer_that_the_kit_cannot_make_is_skipped_until_the_author_makes_it():
    case = next(value for name, value in kit_of(TARGET).cases_for("boundary") if name.endswith("inputs-9"))
    with pytest.raises(Skipped, match=r"number of inputs is 9: put a function .*'acme_npu.concatenation.inputs'"):
        AT_A_LIMIT(kit_of(TARGET), case)
    rule_id = "acme_npu.concatenation.inputs"
    AT_A_LIMIT(kit_of(TARGET, boundary_layers={rule_id: layers_with_inputs}), case)
    with pytest.raises(Failed, match="does not speak of the layer that was made for 9"):
        AT_A_LIMIT(kit_of(TARGET, boundary_layers={rule_id: relu_whatever}), case)
    outside = (case[0], attrs.evolve(case[1], value=10, allowed=False))
    with pytest.raises(Failed, match="number of inputs 10 is allowed, and its text says"):
        AT_A_LIMIT(kit_of(TARGET, boundary_layers={rule_id: lambda value: layers_with_inputs(2)}), outside)


def test_members_that_a_rule_does_not_list_are_tried_too():
    names = [name for name, _ in kit_of(TARGET).cases_for("boundary")]
    assert "acme_npu.activation.type-RELU" in names
    assert "acme_npu.activation.type-ELU" in names
    assert {"acme_npu.second_only-second", "acme_npu.second_only-first"} <= set(names)


def test_a_layer_for_a_rule_that_does_not_exist_fails():
    kit = kit_of(TARGET, boundary_layers={"acme_npu.old": relu_whatever})
    assert outcomes(kit, TargetConformance.test_boundary_layers_belong_to_rules_with_limits) == [
        "boundary_layers['acme_npu.old']: no rule with limits has this id"
    ]


def test_a_kind_that_is_refused_without_a_reason_fails(monkeypatch):
    kind = TargetConformance.test_a_layer_kind_is_supported_or_has_a_reason
    silent = attrs.evolve(LIMITS, unsupported={"gather": " "})
    assert outcomes(kit_of(declared(monkeypatch, limits=silent)), kind) == ["gather is refused without a reason"]
    nameless = attrs.evolve(LIMITS, source="")
    failures = outcomes(kit_of(declared(monkeypatch, limits=nameless)), kind)
    assert "cast is refused, and the table names no document (`source`) that lists the layers" in failures
    assert not [failure for failure in failures if failure.startswith(("gather", "activation"))]


def test_a_supported_kind_that_is_misspelt_fails(monkeypatch):
    wrong = attrs.evolve(LIMITS, supported_kinds=LIMITS.supported_kinds | {"poling"})
    failures = outcomes(kit_of(declared(monkeypatch, limits=wrong)), TargetConformance.test_supported_layer_kinds_exist)
    assert failures == ["'poling' is supported, but is not a layer kind"]


def test_an_int8_target_that_does_not_mention_quantize_layers_fails(monkeypatch):
    test = TargetConformance.test_a_device_that_computes_in_int8_says_whether_it_takes_quantized_models
    kinds = LIMITS.supported_kinds - {"quantize", "dequantize"}
    for supported, expected in ((kinds, "'quantize'"), (kinds | {"quantize", "dequantize"}, None)):
        target = declared(monkeypatch, limits=attrs.evolve(LIMITS, supported_kinds=supported, unsupported={}))
        failures = outcomes(kit_of(attrs.evolve(target, precisions=[DataType.INT8, DataType.HALF])), test)
        assert len(failures) == (expected is not None)
        assert all(expected in one for one in failures)


def test_a_rule_that_raises_fails_with_what_it_raised_and_the_layer(monkeypatch, install):
    kit = kit_of(install(declared(monkeypatch, limits=acme_npu.with_rule(check=acme_npu.raises))), layers=4)
    failures = outcomes(kit, TargetConformance.test_any_layer_gets_a_verdict)
    assert len(failures) == 1
    assert "limit rule acme_npu.convolution.kernel could not be evaluated" in failures[0]
    assert "AttributeError: Convolution has no attribute 'no_such_attribute'" in failures[0]
    assert "on board-" in failures[0]


# Formats --------------------------------------------------------------------------------------------------------------

WHOLE = TargetConformance.test_a_format_is_declared_whole
SURVIVES = TargetConformance.test_a_tensor_survives_its_format


@pytest.mark.parametrize(
    ("formats", "message"),
    [
        ([TensorFormat("CHW8", [DataType.INT8], source=MANUAL)], "it is listed for FP16, and defined for INT8"),
        ([TensorFormat("CHW8", [DataType.HALF])], "`source` is empty"),
        ([attrs.evolve(CHW8, name="chw8")], "its name is not in upper case"),
        ([CHW8, attrs.evolve(CHW8, channels_vector=16)], "another format of the target has its name"),
    ],
)
def test_a_format_that_lacks_something_fails(formats, message, monkeypatch):
    kit = kit_of(declared(monkeypatch, input_formats={DataType.HALF: formats}))
    failures = outcomes(kit, WHOLE)
    assert failures
    assert message in failures[0]


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (acme_npu.Overlapping, "unpack does not give back what was packed"),
        (acme_npu.Transposed, "does not lie at"),
        (acme_npu.Small, "size_bytes is"),
    ],
)
def test_a_format_that_loses_elements_or_miscounts_fails(cls, message, monkeypatch):
    wrong = cls(
        "WRONG", [DataType.HALF], line_alignment_bytes={"": 2 if cls is acme_npu.Overlapping else 64}, source="s"
    )
    kit = kit_of(declared(monkeypatch, input_formats={DataType.HALF: [wrong]}))
    (failure,) = outcomes(kit, SURVIVES)
    assert "input-HALF-WRONG, shape" in failure
    assert message in failure


# Memory pools ---------------------------------------------------------------------------------------------------------

SRAM = POOLS[0]


@pytest.mark.parametrize(
    ("pools", "message"),
    [
        ([attrs.evolve(SRAM, default_bytes={"": 3 << 18})], "it refuses its own default for 'first', 786432 bytes"),
        ([attrs.evolve(SRAM, default_bytes={"second": 1 << 20})], "there is no default for the family 'first'"),
        ([attrs.evolve(SRAM, holds="everything")], "`holds` is 'everything', not one of activations"),
        ([attrs.evolve(SRAM, per="layer")], "`per` is 'layer', not one of segment, engine"),
        ([attrs.evolve(SRAM, alignment_bytes=48)], "the alignment, 48 bytes, is not a power of two"),
        ([attrs.evolve(SRAM, source="")], "`source` is empty"),
        ([attrs.evolve(SRAM, name="sram")], "its name is not in upper case"),
        ([SRAM, SRAM], "two pools of the target have its name"),
        ([attrs.evolve(SRAM, name="DLA_MANAGED_SRAM")], "DLA has a pool of its name"),
        ([attrs.evolve(SRAM, power_of_two=False, minimum_bytes=-9)], "it accepts a limit of -1 bytes"),
    ],
)
def test_a_wrong_memory_pool_fails(pools, message, monkeypatch):
    kit = kit_of(declared(monkeypatch, memory_pools=pools))
    assert message in outcomes(kit, TargetConformance.test_a_memory_pool_takes_its_own_defaults)[0]


class Generous(MemoryPool):
    """A pool that takes anything."""

    def check_limit(self, limit_bytes):
        pass


def test_a_pool_that_takes_less_than_its_least_fails(monkeypatch):
    kit = kit_of(declared(monkeypatch, memory_pools=[Generous("ACME_SRAM", {"": 1}, "weights", 4096, source="s")]))
    (failure,) = outcomes(kit, TargetConformance.test_a_memory_pool_takes_its_own_defaults)
    assert "it accepts a limit of 4095 bytes, one below its least" in failure


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pool_sizes": {"ACME_NPU/ACME_SRAM": 64}}, "the plan reports 64 bytes, and its tensors reach to"),
        ({"offset": 0}, "share bytes while both live"),
        ({"offset": 1}, "is not at a multiple of 64"),
    ],
)
def test_a_plan_whose_memory_does_not_add_up_fails(changes, message, install, monkeypatch):
    real = pool_checks.Builder.build_plan

    def build_plan(self, network, config):
        plan = real(self, network, config)
        placements = {
            name: attrs.evolve(one, offset=changes.get("offset", one.offset)) if one.pool == "ACME_SRAM" else one
            for name, one in plan.placements.items()
        }
        return attrs.evolve(plan, placements=placements, pool_sizes=changes.get("pool_sizes", plan.pool_sizes))

    monkeypatch.setattr(pool_checks.Builder, "build_plan", build_plan)
    found = outcomes(kit_of(install(TARGET)), TargetConformance.test_the_memory_of_a_plan_adds_up)
    assert any(message in failure for failure in found)


PER_SEGMENT = attrs.evolve(SRAM, per="segment")


def test_the_shares_of_segments_have_to_be_what_the_plan_tells(install, monkeypatch):
    real = pool_checks.Builder.build_plan
    target = install(declared(monkeypatch, memory_pools=[PER_SEGMENT]))

    def build_plan(self, network, config):
        plan = real(self, network, config)
        segments = [attrs.evolve(one, pools=dict.fromkeys(one.pools, 1 << 30)) for one in plan.segments]
        return attrs.evolve(plan, segments=segments)

    test = TargetConformance.test_the_memory_of_a_plan_adds_up
    assert outcomes(kit_of(target, networks=2), test) == []
    monkeypatch.setattr(pool_checks.Builder, "build_plan", build_plan)
    text = "".join(outcomes(kit_of(target, networks=2), test))
    assert "and its segments take 1073741824" in text
    assert "takes 1073741824 bytes, and its tensors reach to" in text
    assert "takes 1073741824 bytes, and the limit is 262144" in text


# Arithmetic -----------------------------------------------------------------------------------------------------------

HALF = acme_npu.ARITHMETIC[DataType.HALF]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"precision": DataType.FLOAT}, "what is listed for it is that of FP32"),
        ({"accumulator": DataType.FP8}, "its accumulator FP8 is narrower"),
        ({"rounds": "never"}, "`rounds` is 'never', not one of group, layer"),
        ({"fidelity": ""}, "the fidelity '' is not one of"),
        ({"source": ""}, "`source` is empty"),
        ({"rounding_since": {(1,): acme_npu.RoundingMode.HALF_UP}}, "the newest version's half_up"),
    ],
)
def test_a_wrong_arithmetic_fails(changes, message, monkeypatch):
    wrong = {**acme_npu.ARITHMETIC, DataType.HALF: attrs.evolve(HALF, **changes)}
    kit = kit_of(declared(monkeypatch, arithmetic=wrong))
    (failure,) = outcomes(kit, TargetConformance.test_a_precision_says_how_it_computes)
    assert failure.startswith("FP16: ")
    assert message in failure


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel": "acme.unknown"}, "the kernel 'acme.unknown' of an approximation is none of the target's"),
        ({"fidelity": "sure"}, "is not one of"),
        ({"text": ""}, "`text` of"),
        ({"source": ""}, "`source` of"),
    ],
)
def test_a_wrong_approximation_fails(changes, message, monkeypatch):
    kernel = acme_npu.TARGET.kernels[0].name
    sound = Approximation(kernel, "A function by a table", "inferred", "a manual")
    for one, expected in ((sound, ()), (attrs.evolve(sound, **changes), (message,))):
        wrong = {**acme_npu.ARITHMETIC, DataType.HALF: attrs.evolve(HALF, approximations=[one])}
        kit = kit_of(declared(monkeypatch, arithmetic=wrong))
        found = outcomes(kit, TargetConformance.test_a_precision_says_how_it_computes)
        assert len(found) == len(expected)
        assert all(text in failure for text, failure in zip(expected, found, strict=True))


def test_a_precision_without_arithmetic_and_an_arithmetic_without_precision_fail(monkeypatch):
    kit = kit_of(declared(monkeypatch, arithmetic={DataType.HALF: HALF, DataType.BF16: HALF}))
    assert outcomes(kit, TargetConformance.test_a_precision_says_how_it_computes) == [
        "FP32: the target computes in it, but does not declare its arithmetic"
    ]
    assert outcomes(kit, TargetConformance.test_only_precisions_have_an_arithmetic) == [
        "BF16: the target does not compute in it"
    ]


# Numbers --------------------------------------------------------------------------------------------------------------

COMPUTES = TargetConformance.test_an_engine_computes_what_the_network_means


def test_a_target_that_supports_no_layer_fails(install, monkeypatch, tmp_path):
    nothing = LimitTable("ACME_NPU", [], supported_kinds=frozenset({"nms"}), source=MANUAL)
    kit = kit_of(install(declared(monkeypatch, limits=nothing)), networks=1)
    failures = outcomes(kit, TargetConformance.test_some_network_can_be_made_for_the_target)
    assert failures[0].startswith("ACME_NPU supports none of activation")
    assert outcomes(kit, COMPUTES, tmp_path) == []


def test_a_target_that_accepts_a_layer_and_loses_it_fails(install, monkeypatch, tmp_path):
    real = trial_networks.make_trial

    def elsewhere(target, precision, seed, *, fallback=True):
        trial = real(target, precision, seed, fallback=fallback)
        trial.config.default_device_type = "CPU"
        return trial

    for module in (trial_networks, engine_checks):
        monkeypatch.setattr(module, "make_trial", elsewhere)
    failures = outcomes(kit_of(install(TARGET), networks=1), COMPUTES, tmp_path)
    assert "no layer is on ACME_NPU" in failures[0]


# The kit as pytest sees it --------------------------------------------------------------------------------------------


def test_what_a_target_does_not_declare_is_skipped_with_the_reason():
    kit = kit_of(acme_npu.BARE)
    for test, reason in (
        (TargetConformance.test_a_rule_can_be_understood_and_can_hold, "there is no limit rule"),
        (TargetConformance.test_supported_layer_kinds_exist, "there is no limit: every layer is supported"),
        (TargetConformance.test_a_format_is_declared_whole, "there is no tensor format of the target's own"),
        (TargetConformance.test_a_memory_pool_takes_its_own_defaults, "there is no memory pool"),
        (TargetConformance.test_a_precision_says_how_it_computes, "there is no arithmetic of the target's own"),
    ):
        with pytest.raises(Skipped, match=reason):
            test(kit, *([None] if test.__code__.co_argcount > 1 else []))


def test_each_declaration_is_a_test_of_its_own():
    made = {}
    metafunc = SimpleNamespace(
        fixturenames=["pool", "format_use", "rule", "tmp_path"],
        parametrize=lambda name, cases: made.update({name: [case.id for case in cases]}),
    )
    kit_of(TARGET).pytest_generate_tests(metafunc)
    assert made["pool"] == ["ACME_SRAM"]
    assert "input-HALF-CHW8" in made["format_use"]
    assert made["rule"] == [one.id for one in TARGET.limits.all_rules]
    kit_of(acme_npu.BARE).pytest_generate_tests(metafunc)
    assert (made["pool"], made["format_use"], made["rule"]) == (["none"],) * 3


def test_the_kits_are_loaded_at_first_use():
    code = "import sys, dryfit.testing; print(sorted({'hypothesis', 'numpy', 'pytest'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="has no attribute 'TargetConformity'"):
        _ = dryfit.testing.TargetConformity


def test_importing_the_core_does_not_import_the_kit():
    code = "import sys, dryfit, dryfit.building, dryfit.cli.main; print('pytest' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
