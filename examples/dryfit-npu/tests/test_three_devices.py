"""One network runs across the DLA, the ACME NPU and the GPU, and each of them says what it makes of each layer."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "three_devices.py"


def test_one_network_runs_on_three_devices(tmp_path, capsys):
    runpy.run_path(str(SCRIPT))["main"](tmp_path / "gate.engine")
    told = capsys.readouterr().out
    assert "devices: ACME_NPU, DLA, GPU" in told
    assert "swish runs on ACME_NPU" in told
    assert "strongest runs on GPU" in told
    assert told.count("    DLA: ") == told.count("    ACME_NPU: ") == told.count("    GPU: ") == 6
    assert "DLA: 'swish' cannot run on DLA: plugin layers are not supported on DLA" in told
    assert "ACME_NPU: 'strongest' cannot run on ACME_NPU" in told
    assert float(re.search(r"reference: ([\d.]+) %", told)[1]) < 1
