"""The model that a question is about, with its config: a path, an ONNX model, a network or a PyTorch module."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import onnx

from dryfit.answers.builder_config import config_of
from dryfit.answers.defaults import with_defaults, with_overlay_board
from dryfit.answers.options import PRECISION_FLAGS, NetworkOptions, Shapes, Sparsity, shape_text
from dryfit.builder.config.builder_config import BuilderConfig
from dryfit.builder.config.enumerations import BuilderFlag
from dryfit.builder.config.optimization_profile import suggested_shape
from dryfit.errors import ConfigError, NetworkError
from dryfit.network.copying import copy_network
from dryfit.network.network import Network
from dryfit.onnx.model_file import ModelSource
from dryfit.onnx.parser import network_from_onnx

Model = Any
"""A path, the bytes of an ONNX file, an `onnx.ModelProto`, a `dryfit.Network`, or, with PyTorch, a module or exported
program: PyTorch need not be installed, so that the type cannot be named."""

EXAMPLE_INPUTS = "example_inputs"


@attrs.frozen(eq=False)
class Asked:
    """A model together with the settings to place, compute and build it.

    Attributes:
        name: path of the model file, or name of the network.
        network: the user's network, or a copy to which the options were applied.
        config: the user's config, or the config built from the options.
        options: the given options with defaults filled in; None if a config was given.
        assumed: defaults that were applied, as command-line options.
        notes: remarks on options that were adjusted.
        source: ONNX model that the network was imported from; None for a network.
        folder: folder of the model's external data.
    """

    name: str
    network: Network
    config: BuilderConfig
    options: NetworkOptions | None
    assumed: Sequence[str] = ()
    notes: Sequence[str] = ()
    source: ModelSource | None = None
    folder: Path | None = None

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

    def name_board(self) -> None:
        """Set the board of the default device in the config, so that the other devices use the same board.

        A config passed by the user is not modified.
        """
        if self.options is not None:
            device = self.config.default_device_type
            self.config.set_platform(device, self.config.platform(device).name)


Defaults = Callable[[NetworkOptions], tuple[NetworkOptions, list[str]]]


def no_defaults(options: NetworkOptions) -> tuple[NetworkOptions, list[str]]:
    """Return the options unchanged."""
    return options, []


def asked(
    model: Model,
    config: BuilderConfig | None,
    options: Mapping[str, Any],
    *,
    defaults: Defaults = with_defaults,
    defaults_of: Callable[[Network], Defaults] | None = None,
    needs_shapes: bool = True,
) -> Asked:
    """Load a model and resolve its settings.

    Args:
        model: a path, the bytes of an ONNX file, an ONNX model, a network, or a PyTorch module or exported program.
        config: the user's config; None to use the options.
        options: keyword arguments, see `Options`; None if a config is given.
        defaults: fills in the options that were not given.
        defaults_of: returns the function that fills in the defaults of a network, if they depend on the network.
        needs_shapes: whether every dynamic input requires a shape. False: only if some shapes are ranges.

    Raises:
        OnnxImportError: The model is corrupt or has unsupported operators.
        ConfigError: Both options and a config were given, or they do not apply to the model.
        UnknownNameError: An option, device, platform or option value does not exist.
    """
    said = dict(options)
    source, folder, name = model_source(model, said.pop(EXAMPLE_INPUTS, None))
    if config is not None:
        if said:
            raise ConfigError(
                "Options and a config cannot be combined",
                found=", ".join(said),
                remedy="Pass either options or a config",
            )
        network = source if isinstance(source, Network) else network_from_onnx(source, folder=folder)
        onnx_source = None if isinstance(source, Network) else source
        return Asked(name or network.name, network, config, None, source=onnx_source, folder=folder)
    stated, board = with_overlay_board(NetworkOptions.said(said))
    if defaults_of is None:
        filled, assumed = defaults(stated)
        network = load_network(source, filled, folder)
    else:
        # Defaults fill in devices and precisions, on which the import does not depend.
        network = load_network(source, stated, folder)
        filled, assumed = defaults_of(network)(stated)
    if needs_shapes or filled.shape_values or any(len(shapes) == 3 for shapes in filled.shape.values()):
        require_shapes(network, filled.shape)
    with quiet_log():
        described, notes = config_of(network, filled)
    return Asked(
        name=name or network.name,
        network=network,
        config=described,
        options=filled,
        assumed=[*board, *assumed],
        notes=notes,
        source=None if isinstance(source, Network) else source,
        folder=folder,
    )


def load_network(source: ModelSource | Network, options: NetworkOptions, folder: Path | None = None) -> Network:
    """Return the network of an ONNX model, or a copy of a network, with the requested input shapes set.

    Args:
        source: a path, a loaded ONNX model, or a network.
        options: shapes, creation flags and the quantize method of the network.
        folder: folder of the external data of a loaded model.

    Raises:
        OnnxImportError: The file is corrupt or has unsupported operators.
        ConfigError: A named input does not exist, or its shape does not fit.
    """
    if isinstance(source, Network):
        network = copy_network(source)
        if options.network_method:
            network.quantize_method = options.network_method
    else:
        network = network_from_onnx(
            source, folder=folder, flags=options.creation_flags, quantize_method=options.network_method
        )
    set_shapes(network, options.shape)
    return network


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
            if len(shape) != len(tensor.shape) or any(
                fixed not in (-1, extent) for fixed, extent in zip(tensor.shape, shape, strict=True)
            ):
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
