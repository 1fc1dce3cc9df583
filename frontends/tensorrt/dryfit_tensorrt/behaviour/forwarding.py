"""Members that need no behaviour of their own: the object of dryfit behind has one of the same name and meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

import dryfit
from dryfit_tensorrt.behaviour.monitoring import report
from dryfit_tensorrt.behaviour.values import from_core, to_core
from dryfit_tensorrt.surface.class_parents import LAYER_CLASSES
from dryfit_tensorrt.surface.origins import Origin
from dryfit_tensorrt.surface.tables import Member


def _cores() -> dict[str, Any]:
    network = dryfit.Network  # its module loads every kind of layer
    kinds = [kind for kind in _kinds(dryfit.Layer) if hasattr(kind, "layer_type")]
    # Loops and conditionals of ONNX are one layer each, with the type of TensorRT's layers that end them.
    named = {kind.layer_type: kind for kind in kinds if kind.kind not in ("loop", "conditional")}
    bases = {kind.__name__: kind for kind in _kinds(dryfit.Layer)}
    return {
        **{LAYER_CLASSES[layer_type]: kind for layer_type, kind in named.items() if layer_type in LAYER_CLASSES},
        "ILoop": dryfit.Loop,
        "IIfConditional": dryfit.IfConditional,
        "ILoopBoundaryLayer": bases["LoopBoundaryLayer"],
        "IIfConditionalBoundaryLayer": bases["ConditionalBoundaryLayer"],
        "IAttention": named["ATTENTION"],
        "ILayer": dryfit.Layer,
        "INetworkDefinition": network,
        "ITensor": dryfit.Tensor,
        "IBuilderConfig": dryfit.BuilderConfig,
        "ICudaEngine": dryfit.Engine,
        "Refitter": dryfit.Refitter,
    }


def _kinds(base: Any) -> Iterator[Any]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)


CORES: Mapping[str, Any] = _cores()
"""Class of TensorRT's to the class of dryfit behind it."""

RENAMED: Mapping[tuple[str, str], str] = {
    ("IActivationLayer", "type"): "activation_type",
    ("IPoolingLayer", "type"): "pooling_type",
    ("ILoopOutputLayer", "kind"): "output_kind",
    ("ITripLimitLayer", "kind"): "limit_kind",
    **{
        (layer, old): f"{old}_nd"
        for layer in ("IConvolutionLayer", "IDeconvolutionLayer")
        for old in ("kernel_size", "stride", "padding", "dilation")
    },
    **{("IPoolingLayer", old): f"{old}_nd" for old in ("window_size", "stride", "padding")},
    **{("IPaddingLayer", old): f"{old}_nd" for old in ("pre_padding", "post_padding")},
    ("INetworkDefinition", "add_convolution"): "add_convolution_nd",
    ("INetworkDefinition", "add_deconvolution"): "add_deconvolution_nd",
    ("INetworkDefinition", "add_pooling"): "add_pooling_nd",
    ("INetworkDefinition", "add_padding"): "add_padding_nd",
}
"""(class, member) to the name in dryfit, where it differs. The older two-dimensional forms are their `_nd` forms."""


PARAMETERS: Mapping[str, str] = {"axesMask": "axes_mask"}
"""Parameter of a method to its name in dryfit, where it differs."""


def forwarded(owner: str, member: Member) -> Any:
    """Return the member that forwards to dryfit, or None where dryfit has none of this name."""
    core = CORES.get(owner)
    name = RENAMED.get((owner, member.name), member.name)
    if core is None or name.startswith("_") or not _has(core, name):
        return None
    made = _method(member, name) if member.is_method else _property(member, name)
    _mark(made, Origin.FORWARDED)
    return made


def _has(core: Any, name: str) -> bool:
    return hasattr(core, name) or (attrs.has(core) and name in attrs.fields_dict(core)) or name in _annotations(core)


def _annotations(core: type) -> set[str]:
    return {name for cls in core.__mro__ for name in vars(cls).get("__annotations__", {})}


def _mark(made: Any, origin: Origin) -> None:
    function: Any = made.fget if isinstance(made, property) else made
    function.origin = origin


def _method(member: Member, name: str) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        arguments = bound(member, args, kwargs)
        core = getattr(self._core, name)
        try:
            named = {PARAMETERS.get(key, key): to_core(value) for key, value in arguments.items()}
            return from_core(self._api, self, core(**named))
        except dryfit.DryfitError as error:
            report(self, "ERROR", str(error))
            return None

    call.__name__ = member.name
    call.__doc__ = f"See dryfit's `{name}`. Logs and returns None where that raises."
    return call


def _property(member: Member, name: str) -> property:
    def get(self: Any) -> Any:
        try:
            return from_core(self._api, self, getattr(self._core, name))
        except dryfit.DryfitError as error:
            if isinstance(error, AttributeError):
                raise
            report(self, "ERROR", str(error))
            return None

    def set_(self: Any, value: Any) -> None:
        try:
            setattr(self._core, name, to_core(value))
        except dryfit.DryfitError as error:
            report(self, "ERROR", str(error))

    return property(get, None if member.is_read_only else set_, doc=f"See dryfit's `{name}`.")


def bound(member: Member, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by parameter, as one of the overloads takes them.

    Raises:
        TypeError: No overload takes these arguments.
    """
    for overload in member.overloads:
        names = [parameter.name for parameter in overload]
        if len(args) > len(names) or any(key not in names[len(args) :] for key in kwargs):
            continue
        found = {**dict(zip(names, args, strict=False)), **kwargs}
        if all(parameter.is_optional or parameter.name in found for parameter in overload):
            return found
    forms = "\n".join(
        f"    {number}. {member.name}({', '.join(one.name for one in overload)})"
        for number, overload in enumerate(member.overloads, 1)
    )
    raise TypeError(
        f"{member.name}(): incompatible function arguments. The following argument types are supported:\n{forms}\n\n"
        f"Invoked with: {', '.join([*map(repr, args), *(f'{key}={value!r}' for key, value in kwargs.items())])}"
    )
