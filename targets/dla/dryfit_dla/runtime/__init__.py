"""A runtime for loadables beside the engine's, in the spirit of cuDLA: cores, modules, memory, tasks and events.

It runs here, by emulation: the host's kernels compute with the DLA's arithmetic, and memory lies as on the device.
"""

from dryfit_dla.loadable import Loadable, LoadableTensor
from dryfit_dla.loadable_file import read_loadable
from dryfit_dla.runtime.board import Board
from dryfit_dla.runtime.device import Device
from dryfit_dla.runtime.event import Event
from dryfit_dla.runtime.memory import Module, RegisteredMemory
from dryfit_dla.runtime.status import DlaError, Status
from dryfit_dla.runtime.submission import Submission, Task

__all__ = [
    "Board",
    "Device",
    "DlaError",
    "Event",
    "Loadable",
    "LoadableTensor",
    "Module",
    "RegisteredMemory",
    "Status",
    "Submission",
    "Task",
    "read_loadable",
]
