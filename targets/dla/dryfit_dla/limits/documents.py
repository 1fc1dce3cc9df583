"""The documents that the rules cite, and remedies that many rules share."""

from __future__ import annotations

from dryfit.network.data_types import DataType

GUIDE = "TensorRT 10 developer guide, Working with DLA"
RUNNING = f"{GUIDE}: Running on DLA during TensorRT Inference"
GENERAL = f"{GUIDE}: General Restrictions"
LAYERS = f"{GUIDE}: Layer Support and Restrictions"
FORMATS = f"{GUIDE}: I/O Formats on DLA"
GUIDE_8_4 = "TensorRT 8.4 developer guide, Working with DLA"
STANDALONE = f"{GUIDE}: DLA Standalone Mode"
HEADERS = "TensorRT headers"
HEADERS_7_1 = f"{HEADERS} of 7.1"
REPORTS = "builder logs"
QUESTIONS = "NVIDIA Deep-Learning-Accelerator-SW, FAQ"
OPERATORS = "NVIDIA Deep-Learning-Accelerator-SW, operators"

INT8 = (DataType.INT8,)
FALL_BACK = "Let this layer run on a fallback device"
RESHAPE = "Reshape the tensor to rank 4 (batch, channels, height, width) in the network"
