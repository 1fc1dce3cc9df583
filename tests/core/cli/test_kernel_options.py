"""`dryfit build --kernel` and `--timing-cache`."""

from __future__ import annotations

import pytest
from tests.core.builder.rival_kernels import install

from dryfit.builder.config.timing_cache import TimingCache, load_timing_cache
from dryfit.engine.engine import Engine


@pytest.fixture
def build(dryfit_command, digits_model, tmp_path):
    """`build(options...)` builds the digits network and gives how the command ended, and the engine."""

    def run(*options):
        path = tmp_path / "digits.engine"
        ended = dryfit_command("build", digits_model, "--output", path, "--shape", "image=1x1x8x8", *options)
        return ended, Engine.load(path) if path.exists() else None

    return run


def kernels(engine):
    """Main layer of each engine layer to its kernel."""
    return {one.layers[0]: one.kernel for one in engine.plan.operations}


def test_a_named_kernel_runs_its_layer_and_the_log_says_so(build):
    _, usual = build()
    layer = next(name for name, kernel in kernels(usual).items() if kernel == "cpu.convolution")
    ended, engine = build("--kernel", f"{layer}=cpu.reference", "--verbose")
    assert kernels(engine)[layer] == "cpu.reference"
    assert "cpu.reference on GPU, set by the user" in ended.err


def test_a_pattern_names_the_kernel_of_many_layers_and_the_last_option_that_fits_holds(build):
    _, usual = build()
    layers = [name for name, kernel in kernels(usual).items() if kernel == "cpu.convolution"]
    _, engine = build("--kernel", "kind:convolution=cpu.reference", "--kernel", f"{layers[0]}=cpu.convolution")
    assert [kernels(engine)[name] for name in layers] == ["cpu.convolution"] + ["cpu.reference"] * (len(layers) - 1)


def test_patterns_that_fit_no_layer_are_refused_all_at_once(build):
    ended, engine = build("--kernel", "nothing=cpu.reference", "--kernel", "kind:pool*ng2=cpu.pooling")
    assert ended.code == 2
    assert engine is None
    assert "Unknown layer 'nothing'" in ended.err
    assert "No layer kind matches 'pool*ng2'" in ended.err


def test_an_unknown_kernel_is_refused_with_the_closest_name(build):
    ended, engine = build("--kernel", "kind:convolution=cpu.convolutoin")
    assert engine is None
    assert "Did you mean 'cpu.convolution'?" in ended.err


def test_an_option_that_names_no_kernel_is_refused_with_an_example(build):
    ended, _ = build("--kernel", "conv1")
    assert ended.code == 2
    assert "must be like conv1=cpu.convolution" in ended.err


ACME = ("--device", "ACME_FAST", "--fallback", "CPU")


def test_a_timing_cache_file_is_made_completed_and_obeyed(build, tmp_path, monkeypatch):
    install(monkeypatch)
    path = tmp_path / "times.jsonl"
    _, first = build(*ACME, "--timing-cache", path)
    cache = load_timing_cache(path)
    acme = {kernel for kernel in kernels(first).values() if kernel.startswith("acme.")}
    assert acme <= {"acme.brisk", "acme.toilsome"}
    known = {key.kernel for key in cache.query_keys()}
    assert {kernel for kernel in known if kernel.startswith("acme.")} == {"acme.brisk", "acme.toilsome"}
    slow = TimingCache()
    for key in cache.query_keys():
        slow.update(key, 5.0 if key.kernel == "acme.brisk" else 1.0)
    path.write_bytes(slow.serialize())
    ended, second = build(*ACME, "--timing-cache", path, "--verbose")
    assert "chosen by measurement (5.0x faster than acme.brisk)" in ended.err
    assert {kernel for kernel in kernels(second).values() if kernel.startswith("acme.")} == {"acme.toilsome"}
    assert path.read_bytes() == slow.serialize()


def test_a_file_that_is_no_timing_cache_is_refused_by_name_and_line_and_stays(build, tmp_path):
    path = tmp_path / "times.jsonl"
    path.write_text("notes of mine\n")
    ended, engine = build("--timing-cache", path)
    assert ended.code == 2
    assert engine is None
    assert f"{path}, line 1: The line is not a timing cache entry" in ended.err
    assert path.read_text() == "notes of mine\n"


def test_a_forbidden_kernel_is_not_chosen_and_one_that_does_not_exist_is_told(build):
    ended, engine = build("--forbid-kernel", "cpu.pool*", "--forbid-kernel", "cpu.nothing")
    assert "cpu.pooling" not in kernels(engine).values()
    assert "cpu.convolution" in kernels(engine).values()
    assert "No kernel of this build's devices matches 'cpu.nothing'" in ended.err
