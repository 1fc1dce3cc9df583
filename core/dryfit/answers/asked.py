"""The model that a question is about: a path, an ONNX model, a network, or a PyTorch module; with its config."""

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
from dryfit.answers.defaults import with_defaults
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
    """A model and how it is to be placed, computed and built.

    Attributes:
        name: what the user calls the model: the path of its file, or the network's name.
        network: the user's own, or a copy that the options changed.
        config: the user's own, or the one that the options describe.
        options: what was given, with defaults filled in; None where a config was given.
        assumed: the defaults that were filled in, as options.
        notes: remarks about options that were adjusted.
        source: the ONNX model that the network came from; None for a network.
        folder: where that model's external data lie.
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
        """Allowed computation types beside FP32, as the options name them."""
        if self.options is not None:
            return list(self.options.precision)
        return [word for word, flag in PRECISION_FLAGS.items() if self.config.get_flag(BuilderFlag[flag])]

    @property
    def sparsity(self) -> Sparsity:
        """Whether zeros of weights count: `disable`, `enable` or `force`."""
        if self.options is not None:
            return self.options.sparsity
        return "enable" if self.config.get_flag(BuilderFlag.SPARSE_WEIGHTS) else "disable"

    def name_board(self) -> None:
        """Name the board of the default device in the config, so that the other devices are taken to be on it.

        A config of the user's own stays as it is.
        """
        if self.options is not None:
            device = self.config.default_device_type
            self.config.set_platform(device, self.config.platform(device).name)


Defaults = Callable[[NetworkOptions], tuple[NetworkOptions, list[str]]]


def no_defaults(options: NetworkOptions) -> tuple[NetworkOptions, list[str]]:
    """The options as they were said."""
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
    """What a question is about.

    Args:
        model: a path, the bytes of an ONNX file, an ONNX model, a network, or a PyTorch module or exported program.
        config: the user's own; None where options describe one.
        options: keyword arguments, see `Options`. None beside a config.
        defaults: fills in what was not said.
        defaults_of: gives the function that does so for a network, where that depends on it.
        needs_shapes: whether each dynamic input needs a shape; else only where some shapes are ranges.

    Raises:
        OnnxImportError: the model is damaged or has operators that are not supported.
        ConfigError: options and config were both given, or do not fit the model.
        UnknownNameError: there is no such option, device, platform or word.
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
    stated = NetworkOptions.said(said)
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
        assumed=assumed,
        notes=notes,
        source=None if isinstance(source, Network) else source,
        folder=folder,
    )


def load_network(source: ModelSource | Network, options: NetworkOptions, folder: Path | None = None) -> Network:
    """The network of an ONNX model, or a copy of one, its inputs set to the shapes that were asked for.

    Args:
        source: a path, a model that was read already, or a network.
        options: shapes, creation flags and the network's quantize method.
        folder: where the external data of a model that was read lie.

    Raises:
        OnnxImportError: the file is damaged or has operators that are not supported.
        ConfigError: an input that was named does not exist, or its shape does not fit.
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
    """Set the shapes of inputs of which one shape is asked for.

    Raises:
        ConfigError: an input that was named does not exist, or a shape does not fit it.
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
    """Refuse dynamic inputs for which no shape was given.

    Raises:
        ConfigError: names the inputs and the options that are missing.
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
    """A shape for people: `Nx3xHxW` has no names here, so that each unknown extent is an N."""
    return shape_text("N" if extent < 0 else extent for extent in shape)


@contextlib.contextmanager
def quiet_log() -> Iterator[None]:
    """Keep the builder's log silent while a question is answered: the answer has the same facts."""
    logger = logging.getLogger("dryfit")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


# Sources --------------------------------------------------------------------------------------------------------------


def model_source(model: Model, example_inputs: Any = None) -> tuple[ModelSource | Network, Path | None, str]:
    """(what is imported, folder of external data, name); the name of a network is left to it.

    Raises:
        ConfigError: this is no model, or example inputs are missing or not wanted.
        NetworkError: PyTorch's exporter fails.
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
    """The ONNX model that PyTorch's exporter writes.

    Raises:
        ConfigError: a module without example inputs.
        NetworkError: the exporter fails, in its words.
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
