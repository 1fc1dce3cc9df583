"""The builder, TensorRT's `IBuilder`, and assessments: build a network with a config, or only place it.

Both start with calibration if the config has a calibrator: it runs the network as an FP32 engine and passes the ranges
to the build. A network is calibrated once, no matter how often it is assessed and built unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.attrs_classes import frozen
from dryfit.builder.assessment import Assessment, assessment_of
from dryfit.builder.build import build_for_export, build_plan, decide
from dryfit.builder.config.builder_config import BuilderConfig, DeviceType
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.builder.config.standalone import is_standalone, refuse_standalone_engine
from dryfit.builder.design import NUM_STAGES, Design, design_network
from dryfit.builder.precision.scales import FoundRanges
from dryfit.builder.refusals import require_buildable
from dryfit.builder.stages import Stages, logger
from dryfit.engine.plan import Plan
from dryfit.errors import BuildError, DryfitError
from dryfit.network.attribute_names import KnownAttributes
from dryfit.network.data_types import DataType
from dryfit.network.network import Network
from dryfit.plugins import registry
from dryfit.target.checks import Between, ParameterCheck

if TYPE_CHECKING:
    from dryfit.engine.engine import Engine


@frozen(eq=False)
class Loadables:
    """The result of `Builder.build_loadables`.

    Attributes:
        files: bytes of each file, by segment index in the plan.
        plan: plan that was built.
        refused: reason by segment index, for segments that their device's exporter cannot write.
    """

    files: Mapping[int, bytes]
    plan: Plan
    refused: Mapping[int, BuildError] = attrs.field(factory=dict)


def assess(network: Network, config: BuilderConfig) -> Assessment:
    """Assess a network with a config: return what a build would do.

    Compiles no kernel and packs no weights, so it is fast enough to be called repeatedly while a network is edited.
    Dynamic dimensions without a profile count as 1 in sizes, and as dynamic in the rules of devices.

    Raises:
        NetworkError: The network is invalid; the message lists all problems.
        ConfigError: The config conflicts with the network, or its settings conflict. Violations that only prevent a
            standalone loadable do not raise: they are listed in `errors`, with the placement.
        CalibrationError: The config's calibrator or its samples failed.
        BuildError: A pass failed, or the config's progress monitor cancelled.

    Example:
        >>> assessment = assess(network, config)
        >>> [layer.layer for layer in assessment.layers if layer.device == "GPU"]
        ['prob']
    """
    return assessment_of(design_for_assessment(network, config), config)


def design_for_assessment(network: Network, config: BuilderConfig) -> Design:
    """Return the decisions behind an assessment. Raises what `assess` raises."""
    return decide(network, config, _found_ranges(network, config))


def design_of_trial(network: Network, config: BuilderConfig) -> Design:
    """Return the same decisions for a question that does not depend on the layout of memory, several times faster.

    Where segments certainly fit, what they need is an upper bound; else, memory is laid out. Raises what `assess`
    raises.
    """
    ranges = _found_ranges(network, config)
    design = decide(network, config, ranges, bounds_memory=True)
    return decide(network, config, ranges) if design.problems else design


def designed(network: Network, config: BuilderConfig, title: str) -> Design:
    """Return the same decisions without notifying plugins that observe builds, or a progress monitor.

    Args:
        network: the user's network.
        config: build settings.
        title: title of the work, for the log.

    Raises:
        DryfitError: See `assess`.
    """
    with Stages(title, NUM_STAGES) as stages:
        return design_network(network, config, stages, _found_ranges(network, config))


def _found_ranges(network: Network, config: BuilderConfig) -> FoundRanges | None:
    """Return the ranges of the config's calibrator; None without one. Raises as `before_build.found_ranges` does."""
    if not config.has_calibrator:
        return None
    # Loads what runs engines, which an assessment needs for nothing else: a quarter of a second.
    from dryfit.calibration.before_build import found_ranges

    return found_ranges(network, config)


class Builder(KnownAttributes):
    """Creates networks and configs, and builds engines from them.

    Attributes:
        logger: TensorRT-style logger, accepted for compatibility. The build reports to Python's logger
            `dryfit.builder`.
        dump_stages_directory: folder for text dumps of each build stage; None for no dumps.

    Example:
        >>> builder = Builder()
        >>> network, config = builder.create_network(), builder.create_builder_config()
        >>> x = network.add_input("x", DataType.FLOAT, (1, 3, 8, 8))
        >>> network.mark_output(network.add_activation(x, ActivationType.RELU).get_output(0))
        >>> engine = builder.build_engine(network, config)
    """

    logger: Any
    dump_stages_directory: Path | None

    def __init__(self, logger: Any = None) -> None:
        self.logger = logger
        self.dump_stages_directory = None
        self._platforms: dict[str, str] = {}

    def reset(self) -> None:
        """Reset to the state of a new builder."""
        self.__init__(self.logger)  # type: ignore[misc]

    # What a build needs -------------------------------------------------------------------------------------------

    def create_network(self, flags: int = 0) -> Network:
        """Create an empty network; weakly typed unless the flags include STRONGLY_TYPED.

        Args:
            flags: bit mask, such as `1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED`.

        Raises:
            NetworkError: A bit is not a creation flag.
        """
        return Network(flags=flags)

    def create_builder_config(self) -> BuilderConfig:
        """Create a new config for the platforms that are set on this builder."""
        config = BuilderConfig()
        for device, platform in self._platforms.items():
            config.set_platform(device, platform)
        return config

    def create_optimization_profile(self) -> OptimizationProfile:
        """Create a new, empty optimization profile."""
        return OptimizationProfile()

    # Building -----------------------------------------------------------------------------------------------------

    def build_plan(self, network: Network, config: BuilderConfig) -> Plan:
        """Decide where and how each layer runs, and pack its weights. The network is not modified.

        Raises:
            NetworkError: The network is invalid; the message lists all problems.
            ConfigError: The config conflicts with the network; for example, a dynamic input has no profile.
            CalibrationError: The config's calibrator or its samples failed.
            PlacementError: Layers cannot be placed; of many that violate the same rules, the first are listed.
            BuildError: The requested build is not possible, a pass failed, or the progress monitor cancelled.
        """
        return build_plan(network, config, _found_ranges(network, config), dump_directory=self._dump_directory)

    @property
    def _dump_directory(self) -> Path | None:
        return None if self.dump_stages_directory is None else Path(self.dump_stages_directory)

    def build_engine(self, network: Network, config: BuilderConfig) -> Engine:
        """Build an engine that runs on this machine.

        Raises:
            BuildError: The engine capability is DLA_STANDALONE, which builds a loadable and not an engine.
            DryfitError: See `build_plan`.
        """
        from dryfit.engine.engine import Engine

        refuse_standalone_engine(config)

        return Engine(self.build_plan(network, config))

    def build_engine_with_config(self, network: Network, config: BuilderConfig) -> Engine:
        """Build an engine; TensorRT's name for `build_engine`."""
        return self.build_engine(network, config)

    def build_serialized_network(self, network: Network, config: BuilderConfig) -> bytes:
        """Return the bytes of an engine file; with the engine capability DLA_STANDALONE, of a loadable.

        Raises:
            ConfigError: The config does not allow a standalone loadable; the message lists the violated rules.
            BuildError: A standalone loadable would have to be split, or would require copies.
            DryfitError: See `build_plan`.
        """
        if is_standalone(config):
            (loadable,) = self.build_loadables(network, config).files.values()
            return loadable
        return self.build_engine(network, config).serialize()

    def build_loadables(self, network: Network, config: BuilderConfig) -> Loadables:
        """Build the loadables of all segments whose device has a runtime of its own.

        They run on this machine like the engine of the same build. DLA_STANDALONE builds exactly one loadable.

        Raises:
            BuildError: None of these segments can be written.
            PluginError: A target's exporter did not return bytes.
            DryfitError: See `build_serialized_network`.
        """
        from dryfit.builder.segments.export import segment_files

        found = _found_ranges(network, config)
        plan, exported = build_for_export(network, config, found, dump_directory=self._dump_directory)
        files, refused = segment_files(plan, exported)
        logger.info("%d loadables", len(files))
        return Loadables(files, plan, refused)

    def is_network_supported(self, network: Network, config: BuilderConfig) -> bool:
        """Return whether `build_plan` can place every layer; `assess` also returns the reasons."""
        try:
            require_buildable(designed(network, config, f"Looking at {network.name}"), config)
        except DryfitError:
            return False
        return True

    # The devices --------------------------------------------------------------------------------------------------

    def set_platform(self, device: str, platform: str) -> None:
        """Select the platform of a device for the properties below and for new configs.

        Raises:
            UnknownNameError: The device or its platform does not exist.
        """
        target = registry.target(device)
        self._platforms[target.device] = target.platform(platform).name

    @property
    def num_DLA_cores(self) -> int:
        """Number of DLA cores of the platform."""
        return registry.target(DeviceType.DLA).platform(self._platforms.get(DeviceType.DLA)).cores

    @property
    def max_DLA_batch_size(self) -> int:
        """Largest batch of a DLA layer, from the rule `dla.batch`; 0 if not limited."""
        limits = registry.target(DeviceType.DLA).limits
        check = limits.rule("dla.batch").check if limits is not None else None
        constraint = check.constraint if isinstance(check, ParameterCheck) else None
        return constraint.high or 0 if isinstance(constraint, Between) else 0

    @property
    def platform_has_fast_fp16(self) -> bool:
        """Whether the GPU supports FP16."""
        return DataType.HALF in registry.target(DeviceType.GPU).precisions

    @property
    def platform_has_fast_int8(self) -> bool:
        """Whether the GPU supports INT8."""
        return DataType.INT8 in registry.target(DeviceType.GPU).precisions

    @property
    def platform_has_tf32(self) -> bool:
        """False: the simulated GPU computes FP32 at full precision."""
        return False
