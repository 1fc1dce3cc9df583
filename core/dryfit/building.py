"""The builder, TensorRT's `IBuilder`, and assessments: from a network and a config to an engine, or to its placement.

Both begin with calibration where the config has a calibrator: it runs the network as an FP32 engine, and what it finds
is given to the build. A network is calibrated once, however often it is assessed and built as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from dryfit.builder.assessment import Assessment, assessment_of
from dryfit.builder.build import build_for_export, build_plan, decide
from dryfit.builder.config.builder_config import BuilderConfig, DeviceType
from dryfit.builder.config.optimization_profile import OptimizationProfile
from dryfit.builder.config.standalone import is_standalone, refuse_standalone_engine
from dryfit.builder.design import NUM_STAGES, Design, design_network
from dryfit.builder.precision.scales import FoundRanges
from dryfit.builder.refusals import require_buildable
from dryfit.builder.segments.export import segment_files
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


@attrs.frozen(eq=False)
class Loadables:
    """What `Builder.build_loadables` gives.

    Attributes:
        files: index of a segment of the plan to its file's bytes.
        plan: what was built.
        refused: index of each segment that its device's exporter cannot write to the reason.
    """

    files: Mapping[int, bytes]
    plan: Plan
    refused: Mapping[int, BuildError] = attrs.field(factory=dict)


def assess(network: Network, config: BuilderConfig) -> Assessment:
    """What a build of the network with this config would do.

    Compiles no kernel and packs no weights, so that it is quick enough to be asked again and again while a network is
    changed. Dynamic dimensions without a profile are reckoned as 1 in sizes, and as dynamic by the rules of devices.

    Raises:
        NetworkError: the network is wrong; all problems are listed.
        ConfigError: config and network, or parts of the config, do not fit together. What only keeps them from being a
            standalone loadable stands in `errors` instead, beside the placement.
        CalibrationError: the config's calibrator or its samples fail.
        BuildError: a pass fails, or the config's progress monitor cancelled.

    Example:
        >>> assessment = assess(network, config)
        >>> [layer.layer for layer in assessment.layers if layer.device == "GPU"]
        ['prob']
    """
    return assessment_of(design_for_assessment(network, config), config)


def design_for_assessment(network: Network, config: BuilderConfig) -> Design:
    """The decisions that an assessment tells of. Raises what `assess` raises."""
    return decide(network, config, _found_ranges(network, config))


def designed(network: Network, config: BuilderConfig, title: str) -> Design:
    """The same decisions for another purpose: neither plugins that watch builds nor a progress monitor are told.

    Args:
        network: the user's.
        config: what it would be built with.
        title: of the work, for the log.

    Raises:
        DryfitError: what `assess` raises.
    """
    with Stages(title, NUM_STAGES) as stages:
        return design_network(network, config, stages, _found_ranges(network, config))


def _found_ranges(network: Network, config: BuilderConfig) -> FoundRanges | None:
    """What the config's calibrator finds; None where it has none. Raises what `before_build.found_ranges` raises."""
    if not config.has_calibrator:
        return None
    # Loads what runs engines, which an assessment needs for nothing else: a quarter of a second.
    from dryfit.calibration.before_build import found_ranges

    return found_ranges(network, config)


class Builder(KnownAttributes):
    """Makes networks, configs and, from both, engines.

    Attributes:
        logger: a TensorRT-style logger may be given; it is kept for compatibility. The build reports to Python's
            logger `dryfit.builder`.
        dump_stages_directory: the folder for text files with the result of each stage; None for no files.

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
        """Return to the state of a new builder."""
        self.__init__(self.logger)  # type: ignore[misc]

    # What a build needs -------------------------------------------------------------------------------------------

    def create_network(self, flags: int = 0) -> Network:
        """An empty network, weakly typed unless the flags say STRONGLY_TYPED.

        Args:
            flags: bit mask, such as `1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED`.

        Raises:
            NetworkError: a bit is no creation flag.
        """
        return Network(flags=flags)

    def create_builder_config(self) -> BuilderConfig:
        """A new config, for the platforms that were set here."""
        config = BuilderConfig()
        for device, platform in self._platforms.items():
            config.set_platform(device, platform)
        return config

    def create_optimization_profile(self) -> OptimizationProfile:
        """A new, empty profile."""
        return OptimizationProfile()

    # Building -----------------------------------------------------------------------------------------------------

    def build_plan(self, network: Network, config: BuilderConfig) -> Plan:
        """Decide where and how each layer runs, and pack its weights. The network stays as it is.

        Raises:
            NetworkError: the network is wrong; all problems are listed.
            ConfigError: config and network do not fit together, such as a dynamic input without a profile.
            CalibrationError: the config's calibrator or its samples fail.
            PlacementError: parts of the network unplaced; of many that fail the same rules the first are named.
            BuildError: something was asked for that cannot be built, a pass fails, or the progress monitor cancelled.
        """
        return build_plan(network, config, _found_ranges(network, config), dump_directory=self._dump_directory)

    @property
    def _dump_directory(self) -> Path | None:
        return None if self.dump_stages_directory is None else Path(self.dump_stages_directory)

    def build_engine(self, network: Network, config: BuilderConfig) -> Engine:
        """An engine that runs here.

        Raises:
            BuildError: the engine capability is DLA_STANDALONE, which gives a loadable and no engine.
            DryfitError: what `build_plan` raises.
        """
        from dryfit.engine.engine import Engine

        refuse_standalone_engine(config)

        return Engine(self.build_plan(network, config))

    def build_engine_with_config(self, network: Network, config: BuilderConfig) -> Engine:
        """TensorRT's name for `build_engine`."""
        return self.build_engine(network, config)

    def build_serialized_network(self, network: Network, config: BuilderConfig) -> bytes:
        """The bytes of an engine file; of a loadable with the engine capability DLA_STANDALONE.

        Raises:
            ConfigError: the config is none of a standalone loadable; says which rules of it are broken.
            BuildError: a standalone loadable would have to be more than one, or need copies around it.
            DryfitError: what `build_plan` raises.
        """
        if is_standalone(config):
            (loadable,) = self.build_loadables(network, config).files.values()
            return loadable
        return self.build_engine(network, config).serialize()

    def build_loadables(self, network: Network, config: BuilderConfig) -> Loadables:
        """The files of segments for their device's own runtime, of the devices that have such files.

        They run here as the engine of this build does. With the engine capability DLA_STANDALONE there is exactly one.

        Raises:
            BuildError: none of these segments can be written.
            PluginError: a target's exporter gave something else than bytes.
            DryfitError: what `build_serialized_network` raises.
        """
        found = _found_ranges(network, config)
        plan, exported = build_for_export(network, config, found, dump_directory=self._dump_directory)
        files, refused = segment_files(plan, exported)
        logger.info("%d loadables", len(files))
        return Loadables(files, plan, refused)

    def is_network_supported(self, network: Network, config: BuilderConfig) -> bool:
        """Whether `build_plan` would find a place for every layer; `assess` says why not."""
        try:
            require_buildable(designed(network, config, f"Looking at {network.name}"), config)
        except DryfitError:
            return False
        return True

    # The devices --------------------------------------------------------------------------------------------------

    def set_platform(self, device: str, platform: str) -> None:
        """Choose the variant of a device that the properties below, and new configs, speak of.

        Raises:
            UnknownNameError: the device, or its platform, does not exist.
        """
        target = registry.target(device)
        self._platforms[target.device] = target.platform(platform).name

    @property
    def num_DLA_cores(self) -> int:
        """How many DLA cores the platform has."""
        return registry.target(DeviceType.DLA).platform(self._platforms.get(DeviceType.DLA)).cores

    @property
    def max_DLA_batch_size(self) -> int:
        """The largest batch of a DLA layer, as the rule `dla.batch` has it; 0 where no rule limits it."""
        limits = registry.target(DeviceType.DLA).limits
        check = limits.rule("dla.batch").check if limits is not None else None
        constraint = check.constraint if isinstance(check, ParameterCheck) else None
        return constraint.high or 0 if isinstance(constraint, Between) else 0

    @property
    def platform_has_fast_fp16(self) -> bool:
        """Whether the GPU computes in FP16."""
        return DataType.HALF in registry.target(DeviceType.GPU).precisions

    @property
    def platform_has_fast_int8(self) -> bool:
        """Whether the GPU computes in INT8."""
        return DataType.INT8 in registry.target(DeviceType.GPU).precisions

    @property
    def platform_has_tf32(self) -> bool:
        """False: the simulated GPU computes FP32 in full."""
        return False
