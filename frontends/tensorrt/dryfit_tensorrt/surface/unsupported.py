"""What is not supported, and why: each such member raises an error that says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dryfit
from dryfit_tensorrt.surface.origins import Origin
from dryfit_tensorrt.surface.tables import Member


class UnsupportedError(dryfit.DryfitError, NotImplementedError):
    """A feature of TensorRT that dryfit does not have."""


_RNN = "TensorRT deprecated it in version 7.2: export the network with ILoop, or with ONNX's LSTM or GRU"

_COMPILED = "TensorRT's Python module takes such plugins from compiled libraries only, and those need NVIDIA's runtime"
_PACKED = "sequences of different lengths in one tensor are not supported: pad them, and mask the padding"

REASONS: Mapping[str, str] = {
    "INetworkDefinition.add_rnn_v2": _RNN,
    "INetworkDefinition.add_moe": "no device that is simulated has mixtures of experts",
    "INetworkDefinition.add_dist_collective": "there is one device",
    "INetworkDefinition.serialize": "it belongs to safety builds; Builder.build_serialized_network builds an engine",
    "IRNNv2Layer": _RNN,
    "IMoELayer": "no device that is simulated has mixtures of experts",
    "IExecutionContext.set_communicator": "there is one device",
    "Runtime.load_runtime": "no library of NVIDIA's is loaded",
    "IPluginRegistry.load_library": "a compiled plugin library needs NVIDIA's runtime: write the plugin in Python",
    "IPluginRegistry.deregister_library": "no library can be loaded",
    "IPluginV2": _COMPILED,
    "IPluginV2Ext": _COMPILED,
    "IAttentionBoundaryLayer": "an attention is one layer here, which add_attention returns",
    **dict.fromkeys(
        (f"IAttention.{name}" for name in ("query_form", "key_value_form", "query_lengths", "key_value_lengths")),
        _PACKED,
    ),
    "IKVCacheUpdateLayer.update_form": _PACKED,
    "IKVCacheUpdateLayer.update_lengths": _PACKED,
    "KernelLaunchParams": "a kernel that is compiled ahead of time needs a GPU",
    "ISymExpr": "a kernel that is compiled ahead of time needs a GPU",
    "ISymExprs": "a kernel that is compiled ahead of time needs a GPU",
}
"""Class, or `Class.member`, to why it is not supported."""


def reason(owner: str, member: str) -> str:
    """Return why a member is not supported.

    Raises:
        KeyError: The table has no reason for it, so that it must work.
    """
    return REASONS.get(f"{owner}.{member}") or REASONS[owner]


def refused(owner: str, member: Member) -> Any:
    """Return a member that raises: a method when it is called, a property when it is read or set."""
    why = reason(owner, member.name)

    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        raise UnsupportedError(
            f"{owner}.{member.name} is not supported",
            where=f"TensorRT {self._api.level.version}",
            remedy=f"Reason: {why}",
        )

    refuse.__name__ = member.name
    refuse.__doc__ = f"Not supported: {why}."
    refuse.origin = Origin.REFUSED  # type: ignore[attr-defined]
    return refuse if member.is_method else property(refuse, refuse, doc=refuse.__doc__)
