"""A runtime for loadables, modeled on cuDLA: cores, modules, memory, tasks and events.

It is an emulation: the host's kernels compute in the DLA's arithmetic, and memory has the device's layout.
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
