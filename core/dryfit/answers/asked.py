"""The model that a question is about, with its config: a path, an ONNX model, a network or a PyTorch module.

Every question that takes a model imports it here: `import_model` picks the importer of the file's format.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import onnx

from dryfit.answers.builder_config import config_of
from dryfit.answers.defaults import with_defaults, with_overlay_board
from dryfit.answers.options import PRECISION_FLAGS, NetworkOptions, Shapes, Sparsity, shape_text
from dryfit.attrs_classes import frozen
from dryfit.builder.assessment import Assessment, assessment_of
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.builder.config.optimization_profile import suggested_shape
from dryfit.builder.design import Design
from dryfit.building import design_for_assessment
from dryfit.errors import ConfigError, NetworkError
from dryfit.network.copying import copy_network
from dryfit.network.network import Network
from dryfit.network.tensor import fits_declared
from dryfit.onnx.model_file import ModelSource, SharedModel, shared_model
from dryfit.onnx.problems import ModelRefusedError
from dryfit.plugins.contributions import ImportedModel, ImportOptions, ModelImporter
from dryfit.plugins.model_importers import DEFAULT_FORMAT, importer_of, model_importers

Model = Any
"""A path, the bytes of a model file, an `onnx.ModelProto`, a `dryfit.Network`, a `dryfit.LoadedModel`, or, with
PyTorch, a module or exported program: PyTorch need not be installed, so that the type cannot be named."""

EXAMPLE_INPUTS = "example_inputs"


@frozen(eq=False)
class Asked:
    """A model together with the settings to place, compute and build it.

    Attributes:
        name: path of the model file, or name of the network.
        network: the user's network, or a copy to which the options were applied.
        config: the user's config, or the config built from the options.
        options: the given options with defaults filled in; None if a config was given.
        assumed: defaults that were applied, as command-line options.
        notes: remarks on options that were adjusted.
        source: model that the network was imported from; None for a network.
        folder: folder of the model's external data.
        format: name of the importer that read the model, such as `onnx` or `tflite`; "" for a network.
    """

    name: str
    network: Network
    config: BuilderConfig
    options: NetworkOptions | None
    assumed: Sequence[str] = ()
    notes: Sequence[str] = ()
    source: ModelSource | None = None
    folder: Path | None = None
    format: str = ""
    _decided: dict[str, Any] = attrs.field(factory=dict, repr=False)

    @property
    def onnx_source(self) -> ModelSource | None:
        """The ONNX model that the network was imported from; None for a network or a model of another format."""
        return self.source if self.format == DEFAULT_FORMAT else None

    def require_onnx(
        self, purpose: str, remedy: str = "Pass the path of an ONNX model, or an onnx.ModelProto"
    ) -> ModelSource:
        """Return the ONNX model that the network was imported from.

        Args:
            purpose: what requires it, the subject of the message: `Tuning`.
            remedy: what to do without one.

        Raises:
            ConfigError: The network was built by the API, or the model has another format.
        """
        if self.onnx_source is None:
            raise _no_onnx(purpose, self.format, remedy)
        return self.onnx_source

    def refuse_other_formats(self, purpose: str, remedy: str) -> None:
        """Accept a network or an ONNX model only; the arguments are those of `require_onnx`.

        Raises:
            ConfigError: The model has another format.
        """
        if self.format not in ("", DEFAULT_FORMAT):
            raise _no_onnx(purpose, self.format, remedy)

    @property
    def precisions(self) -> Sequence[str]:
        """The allowed computation types besides FP32, by their option names."""
        if self.options is not None:
            return list(self.options.precision)
        return [word for word, flag in PRECISION_FLAGS.items() if self.config.get_flag(BuilderFlag[flag])]

    @property
    def sparsity(self) -> Sparsity:
        """The sparsity mode: `disable`, `enable` or `force`."""
        if self.options is not None:
            return self.options.sparsity
        return "enable" if self.config.get_flag(BuilderFlag.SPARSE_WEIGHTS) else "disable"

    def on_named_board(self) -> Asked:
        """Return the same with the board of the default device in the config, so that the other devices use it too.

        A config passed by the user is not modified.
        """
        if self.options is None or self.options.platform is not None:
            return self
        with quiet_log():
            config, _ = config_of(self.network, self.options)
        device = config.default_device_type
        config.set_platform(device, config.platform(device).name)
        return attrs.evolve(self, config=config, decided={})

    @property
    def design(self) -> Design:
        """The decisions about the network, made once. Raises what `dryfit.building.assess` raises."""
        if "design" not in self._decided:
            with quiet_log():
                self._decided["design"] = design_for_assessment(self.network, self.config)
        found: Design = self._decided["design"]
        return found

    @property
    def assessment(self) -> Assessment:
        """What a build would do, from the same decisions. Raises as `design`."""
        if "assessment" not in self._decided:
            with quiet_log():
                self._decided["assessment"] = assessment_of(self.design, self.config)
        found: Assessment = self._decided["assessment"]
        return found


def _no_onnx(purpose: str, found: str, remedy: str) -> ConfigError:
    """The error for a model of another format, or for a network."""
    return ConfigError(
        f"{purpose} requires an ONNX model", where="model", found=_described(found), allowed="ONNX", remedy=remedy
    )


Defaults = Callable[[NetworkOptions], tuple[NetworkOptions, list[str]]]


def no_defaults(options: NetworkOptions) -> tuple[NetworkOptions, list[str]]:
    """Return the options unchanged."""
    return options, []


class LoadedModel:
    """A model for several questions: it is read and imported once, and designed once for the same options.

    It is a snapshot: later changes of the ONNX file, the ONNX model or the network do not show. A model of another
    format is read when it is first asked about.

    Args:
        model: a path, the bytes of a model file, an ONNX model, a network, or a PyTorch module or exported program.
        example_inputs: inputs of a PyTorch module.

    Raises:
        OnnxImportError: The model is corrupt. Unsupported operators are reported by the questions.
        ConfigError: The value is not a model.

    Example:
        >>> model = dryfit.LoadedModel("digits.onnx")
        >>> [dryfit.check(model, platform=board).summary.segments for board in ("agx-orin-64", "orin-nx-16")]
        [6, 6]
    """

    def __init__(self, model: Model, example_inputs: Any = None) -> None:
        source, self.folder, self.name = model_source(model, example_inputs)
        self.format = format_of(source)
        self.source = self._snapshot(source)
        self._imported: dict[Hashable, ImportedModel] = {}
        self._asked: list[Asked] = []

    def _snapshot(self, source: ModelSource | Network) -> ModelSource | Network:
        if isinstance(source, Network):
            return copy_network(source)
        if self.format == DEFAULT_FORMAT:
            return shared_model(source, self.folder)
        return source

    def imported(self, options: NetworkOptions, *, may_imply_method: bool = False) -> ImportedModel:
        """Return what the importer makes of the model, with a new copy of the network. Raises as `load_model`."""
        if isinstance(self.source, Network):
            return load_model(self.source, options)
        shapes = tuple(sorted(options.fixed_shapes.items()))
        key = (options.creation_flags, options.network_method, may_imply_method, shapes)
        if key not in self._imported:
            self._imported[key] = load_model(
                self.source, options, self.folder, may_imply_method=may_imply_method, format=self.format
            )
        return attrs.evolve(self._imported[key], network=copy_network(self._imported[key].network))

    def asked_before(self, options: NetworkOptions) -> Asked | None:
        """Return an earlier question with the same options, whose network and design can be shared."""
        return next((one for one in self._asked if one.options == options), None)

    def keep(self, question: Asked) -> None:
        """Keep a question for others with the same options."""
        self._asked.append(question)


def loaded_model(model: Model, options: Mapping[str, Any]) -> tuple[LoadedModel, dict[str, Any]]:
    """Return a model for several questions, and the options without what belongs to it."""
    others = dict(options)
    examples = others.pop(EXAMPLE_INPUTS, None)
    return model if isinstance(model, LoadedModel) else LoadedModel(model, examples), others


def asked(
    model: Model,
    config: BuilderConfig | None,
    options: Mapping[str, Any],
    *,
    defaults: Defaults = with_defaults,
    defaults_of: Callable[[Network], Defaults] | None = None,
    needs_shapes: bool = True,
    shares: bool = False,
) -> Asked:
    """Load a model and resolve its settings.

    Args:
        model: a path, the bytes of a model file, an ONNX model, a network, or a PyTorch module or exported program.
        config: the user's config; None to use the options.
        options: keyword arguments, see `Options`; None if a config is given.
        defaults: fills in the options that were not given.
        defaults_of: returns the function that fills in the defaults of a network, if they depend on the network.
        needs_shapes: whether every dynamic input requires a shape. False: only if some shapes are ranges.
        shares: whether network, config and design may be those of an earlier question about the same loaded model. The
            question must not modify them.

    Raises:
        OnnxImportError: The model is corrupt or has unsupported operators.
        ConfigError: Both options and a config were given, or they do not apply to the model.
        UnknownNameError: An option, device, platform or option value does not exist.
    """
    said = dict(options)
    source, folder, name = model_source(model, said.pop(EXAMPLE_INPUTS, None))
    loaded = model if isinstance(model, LoadedModel) else None
    form = format_of(source) if loaded is None else loaded.format
    load_whole = (
        functools.partial(load_model, source, folder=folder, format=form) if loaded is None else loaded.imported
    )
    if config is not None:
        if said:
            raise ConfigError(
                "Options and a config cannot be combined",
                found=", ".join(said),
                remedy="Pass either options or a config",
            )

        network = source if isinstance(source, Network) and loaded is None else load_whole(NetworkOptions()).network
        model_file = None if isinstance(source, Network) else source
        return Asked(name or network.name, network, config, None, source=model_file, folder=folder, format=form)
    stated, board = with_overlay_board(NetworkOptions.said(said))
    # Defaults fill in devices, precisions and shapes, on which the import does not depend.
    is_open = not (stated.quantize_method or stated.names_device or stated.platform)
    imported = load_whole(stated, may_imply_method=is_open)
    network = imported.network
    implied: list[str] = []
    if imported.implied_method:
        stated = attrs.evolve(stated, quantize_method=imported.implied_method)
        implied = [f"--quantize-method {imported.implied_method}"]
    if defaults_of is None:
        filled, assumed = defaults(stated)
        set_shapes(network, filled.shape)
    else:
        set_shapes(network, stated.shape)
        filled, assumed = defaults_of(network)(stated)
    if needs_shapes or filled.shape_values or any(len(shapes) == 3 for shapes in filled.shape.values()):
        require_shapes(network, filled.shape)
    if shares and loaded is not None and (earlier := loaded.asked_before(filled)) is not None:
        return attrs.evolve(earlier, assumed=[*implied, *board, *assumed])
    with quiet_log():
        described, notes = config_of(network, filled)
    found = Asked(
        name=name or network.name,
        network=network,
        config=described,
        options=filled,
        assumed=[*implied, *board, *assumed],
        notes=notes,
        source=None if isinstance(source, Network) else source,
        folder=folder,
        format=form,
    )
    if shares and loaded is not None:
        loaded.keep(found)
    return found


def load_network(source: ModelSource | Network, options: NetworkOptions, folder: Path | None = None) -> Network:
    """Return the network of a model, or a copy of a network, with the requested input shapes set.

    Args:
        source: a path, the bytes of a file, a loaded ONNX model, or a network.
        options: shapes, creation flags and the quantize method of the network.
        folder: folder of the external data of a loaded model.

    Raises:
        OnnxImportError: The file is corrupt or has unsupported operators.
        ConfigError: A named input does not exist, or its shape does not fit.
    """
    network = load_model(source, options, folder).network
    set_shapes(network, options.shape)
    return network


def load_model(
    source: ModelSource | Network,
    options: NetworkOptions,
    folder: Path | None = None,
    *,
    may_imply_method: bool = False,
    format: str = "",
) -> ImportedModel:
    """As `load_network`, without setting shapes, together with what the importer says about the model.

    Args:
        source: as for `load_network`.
        options: as for `load_network`.
        folder: as for `load_network`.
        may_imply_method: whether a model that is quantized for the arithmetic of a library gets its quantize method.
        format: name of the importer, if it is known; otherwise the file is looked at.
    """
    if isinstance(source, Network):
        found = ImportedModel(copy_network(source))
        if options.network_method:
            found.network.quantize_method = options.network_method
    else:
        flags, method = options.creation_flags, None if may_imply_method else options.network_method
        wanted = ImportOptions(flags=flags, quantize_method=method, folder=folder)
        try:
            found = import_model(source, wanted, format)
        except ModelRefusedError:  # what is not known of any shape may be known of these
            if not options.fixed_shapes:
                raise
            found = import_model(source, attrs.evolve(wanted, shapes=options.fixed_shapes), format)
    return found


def import_model(source: ModelSource, options: ImportOptions | None = None, format: str = "") -> ImportedModel:
    """Import a model with the importer of its format: the one that recognises its content, or else has its suffix.

    Args:
        source: a path, the bytes of a file or a loaded ONNX model.
        options: for the importer.
        format: name of the importer, if it is known; otherwise the file is looked at.

    Raises:
        OnnxImportError: The file is corrupt or has unsupported operators.
        PluginError: The importer of the format is switched off or broken.
    """
    importer = model_importers()[format] if format else _importer(source)
    return importer.read(source, options or ImportOptions())


def format_of(source: ModelSource | Network) -> str:
    """Return the name of the importer that reads a model; "" for a network."""
    return "" if isinstance(source, Network) else _importer(source).name


def form_of(source: ModelSource | Network) -> str:
    """Return what a model is, for messages: `a network`, `an ONNX model`, `a TFLite model`."""
    return _described(format_of(source))


def _described(format: str) -> str:
    if not format:
        return "a network"
    title = model_importers()[format].title
    return f"{'an' if title[:1] in 'AEIOU' else 'a'} {title} model"


def _importer(source: ModelSource) -> ModelImporter:
    return (
        model_importers()[DEFAULT_FORMAT] if isinstance(source, onnx.ModelProto | SharedModel) else importer_of(source)
    )


def set_shapes(network: Network, shapes: Mapping[str, Shapes]) -> None:
    """Set the shapes of inputs for which a single shape is requested.

    Raises:
        ConfigError: A named input does not exist, or a shape does not fit it.
    """
    inputs = {tensor.name: tensor for tensor in network.inputs}
    for name, asked_shapes in shapes.items():
        if name not in inputs:
            raise ConfigError(
                "The model has no such input",
                where="shape",
                found=name,
                allowed=", ".join(inputs),
                remedy="Use the name of an input of the model",
            )
        tensor = inputs[name]
        for shape in asked_shapes:
            if not fits_declared(shape, tensor.shape):
                raise ConfigError(
                    "The shape must match the model's input",
                    where=f"shape of input {name!r}",
                    found=shape_text(shape),
                    allowed=_open_shape(tensor.shape),
                    remedy="Change only the dynamic dimensions (shown as N)",
                )
        if len(asked_shapes) == 1:
            tensor.shape = asked_shapes[0]


def require_shapes(network: Network, shapes: Mapping[str, Shapes]) -> None:
    """Reject dynamic inputs without a shape.

    Raises:
        ConfigError: Dynamic inputs have no shape; the message lists the inputs and the missing options.
    """
    open_inputs = [tensor for tensor in network.inputs if -1 in tensor.shape and tensor.name not in shapes]
    if open_inputs:
        examples = [suggested_shape(tensor) for tensor in open_inputs]
        raise ConfigError(
            "Dynamic inputs must have shapes",
            where="shape",
            found=", ".join(f"{tensor.name} {_open_shape(tensor.shape)}" for tensor in open_inputs),
            remedy=f"Add {' '.join(examples)} (with the extents you need), or a range: --shape NAME=MIN:OPT:MAX; in "
            "Python, pass the argument shape",
        )


def _open_shape(shape: Sequence[int]) -> str:
    """Format a shape such as `Nx3xHxW`: without dimension names, each unknown extent is an N."""
    return shape_text("N" if extent < 0 else extent for extent in shape)


@contextlib.contextmanager
def quiet_log() -> Iterator[None]:
    """Silence the builder's log while a question is answered; the answer contains the same facts."""
    logger = logging.getLogger("dryfit")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


# Sources --------------------------------------------------------------------------------------------------------------


def model_source(model: Model, example_inputs: Any = None) -> tuple[ModelSource | Network, Path | None, str]:
    """Return (import source, folder of external data, name). The name of a network is left empty.

    Raises:
        ConfigError: The value is not a model, or example inputs are missing or not allowed.
        NetworkError: The PyTorch exporter failed.
    """
    torch_module: Any = sys.modules.get("torch")
    if torch_module is not None and isinstance(model, torch_module.nn.Module | torch_module.export.ExportedProgram):
        return _exported(torch_module, model, example_inputs), None, type(model).__name__
    if example_inputs is not None:
        raise ConfigError(
            "example_inputs require a PyTorch module",
            where=EXAMPLE_INPUTS,
            found=type(model).__name__,
            remedy="Leave out example_inputs, or pass a torch.nn.Module",
        )
    if isinstance(model, LoadedModel):
        return model.source, model.folder, model.name
    if isinstance(model, Network):
        return model, None, ""
    if isinstance(model, onnx.ModelProto):
        return model, None, model.graph.name or "model"
    if isinstance(model, bytes):
        return model, None, "model"
    if isinstance(model, str | os.PathLike):
        return Path(model), Path(model).parent, os.fspath(model)
    raise ConfigError(
        "model must be a path, a network or a module",
        where="model",
        found=type(model).__name__,
        allowed="a path, an onnx.ModelProto, a dryfit.Network, a torch.nn.Module or a torch ExportedProgram",
        remedy="Pass one of these; save other models as ONNX first",
    )


def _exported(torch_module: Any, model: Any, example_inputs: Any) -> onnx.ModelProto:
    """Return the ONNX model that PyTorch's exporter writes.

    Raises:
        ConfigError: The module has no example inputs.
        NetworkError: The exporter failed; the message contains its text.
    """
    is_module = isinstance(model, torch_module.nn.Module)
    if is_module and example_inputs is None:
        raise ConfigError(
            "A PyTorch module requires example inputs",
            where=EXAMPLE_INPUTS,
            remedy="Pass example_inputs=(tensor, ...), as for torch.onnx.export",
        )
    if not isinstance(example_inputs, tuple | None):
        example_inputs = (example_inputs,)
    try:
        program = torch_module.onnx.export(model, example_inputs or (), dynamo=True, verbose=False)
    except Exception as error:  # whatever an exporter raises, of any class
        raise NetworkError(
            "PyTorch's exporter could not write the module as ONNX",
            where=type(model).__name__,
            found=f"{type(error).__name__}: {error}",
            remedy="Install onnxscript, which torch.onnx.export needs, or export the module yourself",
        ) from error
    exported: onnx.ModelProto = program.model_proto
    return exported
