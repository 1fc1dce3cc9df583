import re

from docs.pages.supported_layers import supported_layers_page, target_section

from dryfit.plugins import registry
from dryfit.target.target import Platform, Target


def test_every_rule_of_every_device_is_on_the_page():
    page = supported_layers_page()
    for device in ("DLA", "GPU"):
        table = registry.targets()[device].limits
        assert f"## {device}: " in page
        for rule in table.rules:
            row = next(line for line in page.splitlines() if f"</a>`{rule.id}` |" in line)
            assert rule.source in row
            assert rule.fidelity in row
        for kind, reason in {**table.unsupported, **table.unmodelled}.items():
            assert any(f"`{kind}`" in line and reason in line for line in page.splitlines()), kind


def test_a_row_is_the_rule():
    page = supported_layers_page()
    assert "</a>`dla.convolution.kernel` | kernel_size_nd must be 1 to 32 | all | documented |" in page
    assert "</a>`dla.softmax.accurate_8_4` |" in page
    assert "| up to 8.4 | documented | TensorRT 8.4 developer guide" in page
    assert "(warning only) | from 8.5 |" in page


def test_a_device_without_limits_has_no_section():
    assert target_section(Target("ACME", "Acme", [Platform("one", "one", "One")])) == ""


def test_every_rule_has_one_anchor_which_is_its_id():
    page = supported_layers_page()
    anchors = re.findall(r'<a id="([^"]+)"></a>', page)
    tables = [target.limits for target in registry.targets().values() if target.limits is not None]
    assert sorted(anchors) == sorted(rule.id for table in tables for rule in table.all_rules)
