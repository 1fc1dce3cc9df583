"""Writes the pages of docs that follow from the code, or says which of them are not current.

`python docs/generate.py` writes them, and runs the examples of the guides again; with `--check` it compares the pages
and writes nothing (the guides are compared by a test).
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import operator
import os
import sys
from pathlib import Path
from typing import Any

from guides import guide_pages, is_same_page, page_as_it_should_be

from dryfit.answers.json_data import json_schema
from dryfit.answers.text import Answer

sys.path.insert(0, str(Path(__file__).parents[1]))  # the pages import one another as docs.pages

REFERENCE = Path(__file__).parent / "reference"

PAGES = {
    "annotate.schema.json": "dryfit.answers.annotate:AnnotateAnswer",
    "board-pack.schema.json": "dryfit.answers.board.pack:BoardPackAnswer",
    "board-read.schema.json": "dryfit.answers.board.read:BoardReadAnswer",
    "board-learn.schema.json": "dryfit.answers.board.learn:BoardLearnAnswer",
    "board-report.schema.json": "docs.pages.boards:report_schema",
    "boards.md": "docs.pages.boards:boards_page",
    "build.schema.json": "dryfit.answers.build:BuildAnswer|dryfit.answers.export_loadables:ExportLoadablesAnswer",
    "cache.schema.json": (
        "dryfit.answers.cache_answers:CacheAnswer|dryfit.answers.cache_answers:CacheDiffAnswer"
        "|dryfit.answers.cache_answers:CacheCheckAnswer|dryfit.answers.written_caches:MergeAnswer"
        "|dryfit.answers.written_caches:ConvertAnswer"
    ),
    "calibrate.schema.json": (
        "dryfit.answers.calibration:CalibrationAnswer|dryfit.answers.calibration:CalibratorsAnswer"
    ),
    "calibration-cache.schema.json": "dryfit.quantization.cache_document:CacheDocument",
    "check.schema.json": "dryfit.answers.check:CheckAnswer",
    "compare-devices.schema.json": "dryfit.answers.compare_devices:CompareDevicesAnswer",
    "compare-methods.schema.json": "dryfit.answers.compare_methods:CompareMethodsAnswer",
    "compare-versions.schema.json": "dryfit.answers.compare_versions:CompareVersionsAnswer",
    "compare.schema.json": "dryfit.answers.comparison.answer:CompareAnswer",
    "dla-cost-model.md": "docs.pages.dla_cost.page:cost_page",
    "doctor.schema.json": "dryfit.answers.installation:InstallationAnswer",
    "estimate.schema.json": "dryfit.answers.estimate:EstimateAnswer",
    "explain.schema.json": "dryfit.answers.explain:ExplainAnswer",
    "explain-rule.schema.json": ("dryfit.answers.explain_rule:RuleExplanation|dryfit.answers.explain_rule:RulesAnswer"),
    "explain-log.schema.json": "dryfit.answers.explain_log:ExplainLogAnswer",
    "cli.md": "docs.pages.reference:command_line_page",
    "exec.schema.json": "dryfit.answers.trtexec.run:ExecTrtexecAnswer",
    "hooks.md": "docs.pages.hooks:hooks_page",
    "export-loadables.schema.json": "dryfit.answers.export_loadables:ExportLoadablesAnswer",
    "export-trtexec.schema.json": "dryfit.answers.export_trtexec:ExportTrtexecAnswer",
    "inspect.schema.json": "dryfit.answers.inspect_engine:InspectAnswer",
    "log-messages.md": "docs.pages.log_messages:log_messages_page",
    "migrate.schema.json": "dryfit_tensorrt.migrate:MigrateAnswer",
    "mode-rules.md": "docs.pages.rules:mode_rules_page",
    "onnx-operators.md": "docs.pages.onnx_operators:onnx_operators_page",
    "overlay.schema.json": "docs.pages.overlays:overlay_schema",
    "overlays.md": "docs.pages.overlays:overlays_page",
    "place.schema.json": "dryfit.answers.place:PlaceAnswer",
    "plugins.schema.json": "dryfit.answers.plugins:PluginsAnswer|dryfit.answers.plugins:PluginsDoctorAnswer",
    "python-api.md": "docs.pages.reference:python_page",
    "qdq.schema.json": "dryfit.answers.lint:LintAnswer",
    "quantization-lint.md": "docs.pages.quantization_lint:lint_page",
    "quantization-moves.md": "docs.pages.quantization_moves:moves_page",
    "quantize-methods.md": "docs.pages.quantize_methods:quantize_methods_page",
    "quantization.schema.json": "dryfit.answers.explain_quantization:QuantizationAnswer",
    "quantize-methods.schema.json": "dryfit.answers.quantize_methods:QuantizeMethodsAnswer",
    "refit.schema.json": "dryfit.answers.refit:RefitAnswer",
    "rule-numbers.md": "docs.pages.rules:rule_numbers_page",
    "report.schema.json": "dryfit.reporting.report:ReportAnswer|dryfit.reporting.fleet:FleetAnswer",
    "run.schema.json": "dryfit.answers.run:RunAnswer",
    "sensitivity.schema.json": "dryfit.answers.sensitivity.sensitivity:SensitivityAnswer",
    "sparsity.schema.json": "dryfit.answers.sparsity:SparsityAnswer|dryfit.answers.pruned_model:PruneAnswer",
    "supported-layers.md": "docs.pages.supported_layers:supported_layers_page",
    "targets.schema.json": "dryfit.answers.targets:TargetsAnswer|dryfit.answers.targets:TargetAnswer"
    "|dryfit.answers.targets:TargetDifferences",
    "tensor-formats.md": "docs.pages.tensor_formats:formats_page",
    "tensorrt-members.md": "docs.pages.tensorrt_members:members_page",
    "tflite-operators.md": "docs.pages.tflite_operators:tflite_operators_page",
    "trtexec-options.md": "docs.pages.trtexec_options:trtexec_page",
    "translate.schema.json": "dryfit.answers.translation:TranslateAnswer",
    "tune.schema.json": "dryfit.answers.tuning.tuning:TuneAnswer",
    "warmup.schema.json": "dryfit.answers.warmup:WarmupAnswer",
    "../../core/dryfit/__init__.pyi": "docs.pages.stubs:dryfit_stub",
    "../../core/dryfit/testing/__init__.pyi": "docs.pages.stubs:testing_stub",
}
"""Path from `docs/reference` to the function that returns its text, or to the records whose JSON Schema it is."""


def page(name: str) -> str:
    """The text that a page should have."""
    places = (one.partition(":") for one in PAGES[name].split("|"))
    found: list[Any] = [getattr(importlib.import_module(module), own) for module, _, own in places]
    if len(found) > 1:
        command = name.removesuffix(".schema.json")
        made: Any = json_schema(functools.reduce(operator.or_, found), f"dryfit {command} --json")
    elif not isinstance(found[0], type):
        made = found[0]()
    elif issubclass(found[0], Answer):
        made = found[0].schema()
    else:  # a file that is no command's answer
        made = json_schema(found[0], f"dryfit {name.removesuffix('.schema.json').replace('-', ' ')}")
    text: str = made if isinstance(made, str) else json.dumps(made, indent=2)
    return text.rstrip("\n") + "\n"


def stale_pages() -> list[str]:
    """Names of the pages that do not have the text that they should have."""
    return [
        name
        for name in PAGES
        if not (REFERENCE / name).is_file() or (REFERENCE / name).read_text(encoding="utf-8") != page(name)
    ]


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description="Write the generated pages of docs.")
    parser.add_argument("--check", action="store_true", help="only say which pages are not current")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="write these pages only; guides stay as they are")
    asked = parser.parse_args()
    if asked.check:
        stale = stale_pages()
        for name in stale:
            print(f"{os.path.normpath(f'docs/reference/{name}')} is not current: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for name in asked.pages or PAGES:
        (REFERENCE / name).write_text(page(name), encoding="utf-8")
    for guide in () if asked.pages else guide_pages():
        text = page_as_it_should_be(guide)
        if not is_same_page(text, guide.read_text(encoding="utf-8")):
            guide.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
