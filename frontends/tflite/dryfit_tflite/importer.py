"""Import of a TFLite model to a network, operator by operator; all reasons for a failure are collected before raising.

Shapes are those of the file: a dimension that its signature leaves open has the extent that the file gives it, as in an
interpreter whose inputs are not resized.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from dryfit.errors import DryfitError, ModelImportError
from dryfit.network.layer import Layer
from dryfit.network.layers.movement import Identity
from dryfit.network.network import Network
from dryfit.network.tensor import Tensor
from dryfit.plugins.contributions import ImportedModel, ImportOptions
from dryfit.short_text import count_text, grouped, likeness, printable
from dryfit_tflite.model_file import TfliteFile, TfliteOperator, TfliteTensor, read_file
from dryfit_tflite.operator_view import Operator, OperatorRefusedError, Value
from dryfit_tflite.registry import operator_functions

IMPLIED_METHOD = "tflite"
"""The quantize method that a quantized model gets if nothing else is asked: LiteRT's reference kernels."""

_COPIES = 8
"""How many times the size of the file the constants of a network may be. Our choice: weights are copied once or twice,
into the layout of the layers, and a file may let many operators read the same ones."""
_ROOM = 1 << 24


def network_from_tflite(source: str | os.PathLike[str] | bytes, options: ImportOptions) -> ImportedModel:
    """Return the network of a TFLite model, and the quantize method that it is made for.

    Layers are named after their operators (`CONV_2D_3`), and tensors as in the file.

    Args:
        source: a path, or the bytes of a file.
        options: flags and quantize method of the network.

    Raises:
        ModelImportError: The file is damaged, or has operators that are not supported: lists each with the reason.
    """
    file = read_file(source)
    network = Network(printable(file.name, kept=""), options.flags)
    is_quantized = any(tensor.quantization is not None and tensor.data is None for tensor in file.tensors)
    implied = IMPLIED_METHOD if options.quantize_method is None and is_quantized else ""
    network.quantize_method = implied or options.quantize_method or ""
    _GraphImport(network, file).run()
    return ImportedModel(network, implied)


class _GraphImport:
    """The import of one file."""

    def __init__(self, network: Network, file: TfliteFile) -> None:
        self._network, self._file = network, file
        self._values = [Value(tensor) for tensor in file.tensors]
        self._problems: list[tuple[str, DryfitError]] = []
        self._left = _COPIES * file.size + _ROOM

    def run(self) -> None:
        """Import inputs, constants, operators and outputs.

        Raises:
            ModelImportError: Something of it cannot be imported.
        """
        self._check_operators()
        self._raise_problems()
        self._add_inputs()
        for value in self._values:
            if value.tensor.data is not None and value.stored is None:
                value.known = value.tensor.data
        self._import_operators()
        self._raise_problems()
        self._mark_outputs()
        self._name_tensors()
        _remove_unused(self._network)

    def _check_operators(self) -> None:
        """Note every operator and tensor that no function imports."""
        functions = operator_functions()
        for operator in self._file.operators:
            where = f"operator {operator.index} ({printable(operator.name, kept='')})"
            if operator.is_custom:
                problem = ModelImportError(
                    "Custom operators are not supported",
                    found=printable(operator.name, kept=""),
                    remedy="Convert the model with built-in operators",
                )
            elif operator.name not in functions:
                problem = ModelImportError("The operator is not supported", remedy="Convert the model without it")
            else:
                tensors = [self._values[index].tensor for index in (*operator.inputs, *operator.outputs) if index >= 0]
                found = next(filter(None, map(_tensor_problem, tensors)), None)
                if found is None:
                    continue
                problem = found
            self._problems.append((where, problem))

    def _add_inputs(self) -> None:
        for index in dict.fromkeys(self._file.inputs):
            value = self._values[index]
            problem = _tensor_problem(value.tensor)
            if problem is not None or value.tensor.dtype is None:
                raise ModelImportError(
                    problem.message if problem else "The type is not supported",
                    where=f"input {value.tensor.where}",
                    found=value.tensor.type_name if problem is None else problem.found,
                    remedy="Convert the model again",
                )
            name = self._free_name(value.tensor)
            value.stored = self._network.add_input(name, value.tensor.dtype, value.tensor.shape)

    def _import_operators(self) -> None:
        functions = operator_functions()
        unseen: set[int] = set()
        for record in self._file.operators:
            if unseen.intersection(record.inputs):
                unseen.update(record.outputs)  # behind one that was refused
                continue
            view = Operator(record, self._network, self._values, self._spend)
            try:
                self._require_new_outputs(record.outputs)
                functions[record.name](view)
            except DryfitError as error:
                self._refuse(record.index, record.name, error)
                unseen.update(record.outputs)
            except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
                problem = ModelImportError(
                    "The operator is malformed",
                    found=f"{type(error).__name__}: {error}",
                    remedy="Convert the model again",
                )
                self._refuse(record.index, record.name, problem)
                unseen.update(record.outputs)

    def _require_new_outputs(self, outputs: Sequence[int]) -> None:
        for index in outputs:
            value = self._values[index] if index >= 0 else None
            if value is not None and (value.stored is not None or value.first is not None or value.known is not None):
                raise OperatorRefusedError(
                    "An output must be given once",
                    found=f"{value.tensor.where} is also an input, a constant or another operator's output",
                    remedy="Convert the model again",
                )

    def _refuse(self, index: int, name: str, error: DryfitError) -> None:
        self._problems.append((f"operator {index} ({name})", error))

    def _raise_problems(self) -> None:
        if not self._problems:
            return
        lines = [(where, f"{where}: {error}") for where, error in self._problems]
        entries = [
            ((likeness(str(error)),), where, line)
            for (where, line), (_, error) in zip(lines, self._problems, strict=True)
        ]
        text = "".join(f"\n  {line}" for line in grouped(entries))
        count = count_text(len(self._problems), "reason")
        raise ModelImportError(
            f"The model cannot be imported, for {count}:{text}",
            remedy="Export the model without these operators, or with other ones",
        )

    def _spend(self, size: int) -> None:
        """Count the bytes of constants that are made."""
        self._left -= size
        if self._left < 0:
            raise OperatorRefusedError(
                "The constants of the network would be many times the size of the file",
                allowed=f"{_COPIES * self._file.size + _ROOM} bytes",
                remedy="Convert the model again",
            )

    # Borders and names --------------------------------------------------------------------------------------------

    def _mark_outputs(self) -> None:
        named: set[int] = set()
        for index in self._file.outputs:
            value = self._values[index]
            view = Operator(_no_operator(self._file, index), self._network, self._values, self._spend)
            tensor = view.tensor_of(value)
            name = self._free_name(value.tensor, of=tensor if index not in named else None)
            if tensor.is_network_input or tensor.is_network_output or index in named:
                tensor = self._network.add_layer(Identity(name=f"output {name}"), [tensor]).outputs[0]
            named.add(index)
            self._claim(tensor, name)
            self._network.mark_output(tensor)

    def _name_tensors(self) -> None:
        """Give computed tensors the names of the file; outputs and inputs have theirs."""
        for value in self._values:
            tensor = value.first if value.stored is None else value.stored
            if tensor is None or value.known is not None or tensor.is_network_input or tensor.is_network_output:
                continue
            if self._network.find_tensor(value.tensor.name) is None:
                self._network.rename_tensor(tensor, value.tensor.name)

    def _free_name(self, tensor: TfliteTensor, of: Tensor | None = None) -> str:
        """The name of a tensor at the border; files may use one name twice."""
        name = printable(tensor.name, kept="")
        holder = self._network.find_tensor(name)
        if holder is None or holder is of or not (holder.is_network_input or holder.is_network_output):
            return name
        number = 1
        while self._network.find_tensor(f"{name}_{number}") is not None:
            number += 1
        return f"{name}_{number}"

    def _claim(self, tensor: Tensor, name: str) -> None:
        """Name a tensor; one that has the name by chance gets another."""
        if tensor.name == name:
            return
        holder = self._network.find_tensor(name)
        if holder is not None:
            number = 1
            while self._network.find_tensor(f"{name}_{number}") is not None:
                number += 1
            self._network.rename_tensor(holder, f"{name}_{number}")
        self._network.rename_tensor(tensor, name)


def _tensor_problem(tensor: TfliteTensor) -> ModelImportError | None:
    """Why a tensor cannot be imported; None where it can."""
    if tensor.dtype is None:
        return ModelImportError(
            "The type is not supported",
            found=f"{tensor.type_name} of {tensor.where}",
            allowed="numbers and BOOL",
            remedy="Convert the model with numbers only",
        )
    if tensor.is_variable:
        return ModelImportError(
            "Variable tensors, which keep their values from run to run, are not supported",
            found=tensor.where,
            remedy="Convert the model with its state as inputs and outputs",
        )
    if tensor.is_sparse:
        return ModelImportError(
            "Sparse tensors are not supported", found=tensor.where, remedy="Convert the model without sparsity"
        )
    return None


def _no_operator(file: TfliteFile, index: int) -> TfliteOperator:
    """What stands for the output of a model where a view adds layers for it."""
    return TfliteOperator(len(file.operators), "OUTPUT", False, 1, (index,), (index,), None, "")


def _remove_unused(network: Network) -> None:
    """Remove the layers that no output of the network depends on."""
    needed: set[int] = set()
    waiting: list[Layer] = [tensor.producer for tensor in network.outputs if tensor.producer is not None]
    while waiting:
        layer = waiting.pop()
        if id(layer) not in needed:
            needed.add(id(layer))
            waiting.extend(tensor.producer for tensor in layer.connected_inputs if tensor.producer is not None)
    network.remove_layers([layer for layer in network.layers if id(layer) not in needed])
