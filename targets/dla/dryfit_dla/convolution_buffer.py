"""The convolution buffer: whether a convolution's weights and input fit into the 16 banks of on-chip memory.

Two answers, both in whole banks. The *validator* is what TensorRT checks before it hands layers to the DLA's compiler:
it decides whether a layer can run there. The *estimate* is what the open compiler of NVDLA, the DLA's published
ancestor, would need; it is stricter, and real builds have failed where the validator passed, so it is told as a
warning.

Source: TensorRT 10 developer guide, Working with DLA: Convolution and Fully Connected layers (the names
wtBanksForOneKernel, minDataBanks and the limit of 16); TensorRT 8.4 developer guide, the same chapter (the formulas);
nvdla/sw, the compiler's convolution core (the estimate). The true geometry of Orin's buffer is not published.
"""

from __future__ import annotations

from dryfit.attrs_classes import frozen

BANKS = 16
BANK_BYTES = 32768
ENTRIES_PER_BANK = 256
ENTRY_BYTES = 128
ATOM_BYTES = 32


@frozen
class BufferUse:
    """A convolution, as the buffer sees it.

    Attributes:
        channels: of the whole input.
        height, width: of the input, without padding.
        kernel_height, kernel_width: the window.
        dilation_height: distance of the kernel's rows.
        output_maps: kernels.
        groups: the channels of one kernel are `channels / groups`.
        element_bytes: 1 for INT8, 2 for FP16.
        stride_height: step of the window, for the rows that two parts of a split input share.
        padding_width: columns of padding on both sides together; counts for pixel input only.
        is_pixel_input: the input is an image in DLA_HWC4, which the buffer holds as four channels a pixel.
    """

    channels: int
    height: int
    width: int
    kernel_height: int
    kernel_width: int
    output_maps: int
    element_bytes: int
    dilation_height: int = 1
    groups: int = 1
    stride_height: int = 1
    padding_width: int = 0
    is_pixel_input: bool = False

    @property
    def dilated_kernel_height(self) -> int:
        """Rows that the dilated kernel covers."""
        return (self.kernel_height - 1) * self.dilation_height + 1

    # The validator ------------------------------------------------------------------------------------------------

    @property
    def validator_weight_banks(self) -> int:
        """wtBanksForOneKernel: the banks of one kernel's weights.

        The chapter does not say which channels count in a grouped convolution; those of one group are taken.
        """
        one_kernel = self.channels // self.groups * self.kernel_height * self.kernel_width * self.element_bytes
        return _parts(_parts(one_kernel, ENTRY_BYTES) * ENTRY_BYTES, BANK_BYTES)

    @property
    def validator_data_banks(self) -> int:
        """minDataBanks: the banks of as many input rows as the dilated kernel covers."""
        entries_per_row = _parts(_parts(self.channels * self.element_bytes, ATOM_BYTES) * self.width, 4)
        return _parts(entries_per_row * self.dilated_kernel_height, ENTRIES_PER_BANK)

    @property
    def validator_banks(self) -> int:
        """WtBanksForOneKernel + minDataBanks; at most 16 can run."""
        return self.validator_weight_banks + self.validator_data_banks

    # The estimate -------------------------------------------------------------------------------------------------

    @property
    def kernels_per_group(self) -> int:
        """Kernels that the multipliers work on at once."""
        return 32 if self.element_bytes == 1 else 16

    def weight_banks(self, kernels: int) -> int:
        """Banks of the weights of this many kernels."""
        columns, channels = self.kernel_width, self.channels // self.groups
        if self.is_pixel_input:
            # Four channels a pixel, and the kernel's width is folded into the channels.
            columns, channels = 1, 4 * self.kernel_width
        elements = channels * self.kernel_height * columns * kernels
        return _parts(_parts(elements * self.element_bytes, ENTRY_BYTES), ENTRIES_PER_BANK)

    @property
    def entries_per_row(self) -> int:
        """Buffer entries of one input row."""
        if self.is_pixel_input:
            return _parts((self.width + self.padding_width) * 4 * self.element_bytes, ENTRY_BYTES)
        full, rest = divmod(_parts(self.channels * self.element_bytes, ATOM_BYTES), 4)
        return full * self.width + (self.width if rest == 3 else _parts(rest * self.width, 4))

    def data_banks(self, rows: int) -> int:
        """Banks of this many input rows."""
        return _parts(self.entries_per_row * rows, ENTRIES_PER_BANK)

    def estimate(self, banks: int = BANKS) -> Estimate:
        """How the open compiler would split the work over this many banks."""
        group, every = self.weight_banks(self.kernels_per_group), self.weight_banks(self.output_maps)
        least, full = self.data_banks(self.dilated_kernel_height), self.data_banks(self.height)
        for mode, weights in (("all weights", every), ("two kernel groups", 2 * group), ("one kernel group", group)):
            if weights + full <= banks:
                return Estimate(f"whole input, {mode}", self.height, group, every, least, full)
        for mode, weights in (("all weights", every), ("two kernel groups", 2 * group), ("one kernel group", group)):
            rows = max(banks - weights, 0) * ENTRIES_PER_BANK // self.entries_per_row
            if rows >= self.dilated_kernel_height:
                return Estimate(f"part of the rows, {mode}", rows, group, every, least, full)
        return Estimate("does not fit", 0, group, every, least, full)


@frozen
class Estimate:
    """What the open compiler would do with a convolution.

    Attributes:
        mode: what is in the buffer at once.
        rows: input rows in the buffer at once; 0 where nothing fits.
        group_weight_banks, all_weight_banks: banks of one kernel group's weights, and of all.
        least_data_banks, all_data_banks: banks of as many rows as the dilated kernel covers, and of all.
    """

    mode: str
    rows: int
    group_weight_banks: int
    all_weight_banks: int
    least_data_banks: int
    all_data_banks: int

    @property
    def fits(self) -> bool:
        """Whether there is a way to run it."""
        return self.rows > 0


def _parts(value: int, size: int) -> int:
    return -(-value // size)
