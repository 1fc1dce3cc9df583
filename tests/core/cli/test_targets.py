from __future__ import annotations

from typing import Any

from dryfit.plugins import registry


def test_the_list_has_every_installed_device(dryfit_command: Any) -> None:
    listed = dryfit_command("targets", "list", "--json").json["targets"]
    assert [one["device"] for one in listed] == list(registry.targets())
    text = dryfit_command("targets", "list").out
    assert all(device in text for device in registry.targets())


def test_a_device_is_shown_by_its_name_in_any_case(dryfit_command: Any) -> None:
    shown = dryfit_command("targets", "show", "dla", "--platform", "xavier", "--json").json
    assert shown["device"] == "DLA"
    assert (shown["platform"], shown["software"], shown["cores"]) == ("agx-xavier", "8.5.10", 2)
    pools = {pool["name"]: pool["default_bytes"] for pool in shown["memory_pools"]}
    assert pools["DLA_MANAGED_SRAM"] == 1 << 20
    assert {"input", "output"} == {one["direction"] for one in shown["formats"]}


def test_rules_are_shown_for_the_platform_and_version_that_were_asked_for(dryfit_command: Any) -> None:
    target = registry.target("DLA")
    for platform, version in (("orin", "8.5"), ("orin", "10.3"), ("xavier", "8.2")):
        shown = dryfit_command("targets", "show", "DLA", "--platform", platform, "--software", version, "--json").json
        chosen = target.platform(platform)
        software = target.software(version, chosen)
        assert target.limits is not None
        expected = [one.id for one in target.limits.all_rules if one.holds_for(chosen.family, software)]
        assert [one["rule"] for one in shown["limits"]] == expected


def test_text_has_platforms_formats_pools_arithmetic_and_limits(dryfit_command: Any) -> None:
    text = dryfit_command("targets", "show", "DLA").out
    for title in ("Platforms", "Formats", "Memory pools", "Arithmetic", "Limits", "Simulated:"):
        assert title in text


def test_an_unknown_device_is_an_error_that_lists_those_that_exist(dryfit_command: Any) -> None:
    ended = dryfit_command("targets", "show", "TPU")
    assert ended.code == 2
    assert "Unknown device: 'TPU' (allowed: CPU, DLA, GPU)" in ended.err


def test_platforms_differ_in_what_their_tables_say(dryfit_command: Any) -> None:
    answer = dryfit_command("targets", "diff", "orin", "xavier", "--json").json
    assert (answer["first"], answer["second"]) == ("agx-orin-64 10.16", "agx-xavier 8.5.10")
    differences = {one["what"]: (one["first"], one["second"]) for one in answer["differences"]}
    assert differences["pool DLA_MANAGED_SRAM"] == ("512.0 KiB", "1.0 MiB")
    assert differences["rounding of INT8"] == ("half_to_even", "half_away_from_zero")
    assert "input format CHW16 (FP16)" not in differences


def test_versions_of_one_platform_can_be_compared(dryfit_command: Any) -> None:
    answer = dryfit_command("targets", "diff", "orin@8.4", "orin@8.5", "--json").json
    differences = {one["what"]: (one["first"], one["second"]) for one in answer["differences"]}
    assert differences["segments per core"] == ("8", "16")


def test_a_difference_needs_two_sides(dryfit_command: Any) -> None:
    ended = dryfit_command("targets", "diff", "orin", "agx-orin-64")
    assert ended.code == 2
    assert "The two sides must differ" in ended.err


def test_a_version_that_a_platform_does_not_have_is_refused(dryfit_command: Any) -> None:
    ended = dryfit_command("targets", "diff", "xavier@10.3", "orin")
    assert ended.code == 2
    assert "found 10.3" in ended.err


def test_a_device_can_stand_for_its_platform(dryfit_command: Any) -> None:
    by_device = dryfit_command("targets", "diff", "dla@8.4", "DLA@10.3", "--json").json
    assert by_device == dryfit_command("targets", "diff", "orin@8.4", "orin@10.3", "--json").json
    assert (by_device["first"], by_device["second"]) == ("agx-orin-64 8.4", "agx-orin-64 10.3")


def test_a_device_with_a_version_means_a_platform_that_has_it(dryfit_command: Any) -> None:
    answer = dryfit_command("targets", "diff", "dla@8.2", "dla@10.3", "--json").json
    assert (answer["first"], answer["second"]) == ("agx-xavier 8.2", "agx-orin-64 10.3")
    ended = dryfit_command("targets", "diff", "dla@7.0", "dla@10.3")
    assert ended.code == 2
    assert "No platform of DLA has this software version (found 7.0; allowed: 7.1, 8.0, 8.2" in ended.err


def test_variants_differ_in_rules_formats_pools_platforms_and_segments(dryfit_command: Any) -> None:
    answer = dryfit_command("targets", "diff", "dla@8.2", "dla@10.3", "--json").json
    found = {one["what"]: one for one in answer["differences"]}
    assert {one["about"] for one in found.values()} >= {"rule", "format", "pool", "platform", "segments", "arithmetic"}
    softmax = found["dla.softmax.platform"]
    assert softmax["first"] == f"not supported: {softmax['second']}"
    hwc4 = found["input format DLA_HWC4 (INT8)"]
    assert (hwc4["first"], hwc4["second"]) == ("lines of a multiple of 32 bytes", "lines of a multiple of 64 bytes")
    platforms = found["platforms with this software"]
    assert platforms["first"] == "agx-xavier, xavier-nx"
    assert "agx-orin-64" in platforms["second"]
    assert "agx-xavier" not in platforms["second"]


def test_a_rule_that_holds_on_both_sides_is_no_difference(dryfit_command: Any) -> None:
    answer = dryfit_command("targets", "diff", "orin", "xavier", "--json").json
    assert "dla.convolution.kernel" not in {one["what"] for one in answer["differences"]}


def test_two_devices_are_not_compared(dryfit_command: Any) -> None:
    ended = dryfit_command("targets", "diff", "dla", "gpu")
    assert ended.code == 2
    assert "found DLA and GPU" in ended.err


def test_a_difference_is_a_line_of_the_table(dryfit_command: Any) -> None:
    text = dryfit_command("targets", "diff", "dla@8.4", "dla@10.3").out
    assert text.startswith("DLA: agx-orin-64 8.4 and agx-orin-64 10.3\n")
    assert any(line.split() == ["segments", "per", "core", "8", "16"] for line in text.splitlines())
