"""Validation of the arguments of the kernel decorator, and their conversion to a record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dryfit.attrs_classes import frozen
from dryfit.errors import PluginError, UnknownNameError
from dryfit.network.data_types import DataType
from dryfit.network.layer import LAYER_KINDS
from dryfit.target.binding import HostLayout, Specs
from dryfit.target.formats import TensorFormat
from dryfit.target.group import LayerGroup

KernelFormats = Mapping[str, TensorFormat]
"""`input` and `output`, or one of the two, to a tensor format."""

WorkspaceBytes = Callable[[LayerGroup, Specs, int], int]
"""(group, specs, number of threads) to bytes of scratch memory of one run."""

SIDES = ("input", "output")
KERNEL_NAME = re.compile(r"[A-Za-z_]\w*(\.\w+)+")
"""`<package>.<what>`."""


@frozen(eq=False)
class KernelDeclaration:
    """Converts the short forms of a declaration to the contents of a `Kernel`.

    Every method raises a PluginError that names the kernel and the function if a value is invalid.

    Attributes:
        given_name: the declared name of the kernel.
        function: the decorated function.
    """

    given_name: str
    function: Callable[..., Any]

    def name(self) -> str:
        """Return the kernel's name."""
        if not isinstance(self.given_name, str) or not KERNEL_NAME.fullmatch(self.given_name):
            raise self._refusal(
                "A kernel's name must be its package, a dot, and a word",
                repr(self.given_name),
                "such as acme.relu",
            )
        return self.given_name

    def kinds(self, given: Iterable[str] | str) -> frozenset[str]:
        """Return the main layer kinds. A frozen set subclass, such as `EveryKind`, is kept as it is."""
        if isinstance(given, frozenset) and type(given) is not frozenset:
            return given
        kinds = self.known_kinds(given, "kinds")
        if not kinds:
            raise self._refusal("kinds: the kernel must support at least one layer kind", "none", "one or more")
        return kinds

    def known_kinds(self, given: Iterable[str] | str, field: str) -> frozenset[str]:
        """Return the layer kinds, after checking that they exist; may be empty."""
        import dryfit.network.layers  # noqa: F401  the kinds that come with dryfit are known once these are imported

        kinds = frozenset([given] if isinstance(given, str) else given)
        for kind in sorted(kinds, key=str):
            if kind not in LAYER_KINDS:
                raise self._unknown(UnknownNameError("layer kind", str(kind), LAYER_KINDS), field)
        return kinds

    def data_types(self, given: Iterable[DataType | str] | DataType | str) -> frozenset[DataType]:
        """Return the data types."""
        listed = [given] if isinstance(given, (DataType, str)) else list(given)
        if not listed:
            raise self._refusal("data_types: the kernel must support at least one type", "none", "one or more")
        try:
            return frozenset(one if isinstance(one, DataType) else DataType.parse(str(one)) for one in listed)
        except UnknownNameError as error:
            raise self._unknown(error, "data_types") from None

    def workspace_bytes(self, given: WorkspaceBytes | int) -> WorkspaceBytes:
        """Return a function for the workspace size, also if it was given as a number."""
        if callable(given):
            return given
        if not isinstance(given, int) or isinstance(given, bool) or given < 0:
            raise self._refusal("The workspace must be a number of bytes or a function", repr(given), "0 and more")
        count = given
        return lambda group, specs, num_threads: count

    def layout(self, given: HostLayout | str) -> HostLayout:
        """Return the host layout."""
        known = {layout.value: layout for layout in HostLayout}
        if isinstance(given, HostLayout):
            return given
        if given not in known:
            raise self._unknown(UnknownNameError("host layout", str(given), known), "layout")
        return known[given]

    def formats(self, given: Mapping[str, TensorFormat]) -> KernelFormats:
        """Return the tensor formats of the inputs and outputs."""
        for side, layout in given.items():
            if side not in SIDES:
                raise self._unknown(UnknownNameError("side of a kernel", str(side), SIDES), "formats")
            if not isinstance(layout, TensorFormat):
                raise self._refusal(
                    f"formats: the {side} has no tensor format",
                    repr(layout),
                    "a TensorFormat",
                    "Use the TensorFormat record of the device, not its name",
                )
        return dict(given)

    def _unknown(self, error: UnknownNameError, field: str) -> PluginError:
        return self._refusal(f"{field}: {error.message}", repr(error.name), error.allowed, error.remedy)

    def _refusal(self, message: str, found: object, allowed: object, remedy: str | None = None) -> PluginError:
        place = f"{self.function.__module__}.{self.function.__qualname__}"
        where = f"kernel {self.given_name!r}, function {place}"
        return PluginError(message, where=where, found=found, allowed=allowed, remedy=remedy)
