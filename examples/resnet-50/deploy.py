# %% [markdown]
# # ResNet-50 on the DLA of a Jetson Orin NX
#
# From an ONNX file to the files that go to the board: where each layer runs, one edit of the model that keeps it on
# the DLA, calibration for INT8, what INT8 changes, estimates, and the command line of `trtexec`. No board is needed.
#
# The weights are random, because no trained network comes with dryfit, so the classes mean nothing here. Placement
# and estimates depend on shapes only and are those of the trained network. To use yours, export it and set `MODEL`;
# the README says how.

# %%
from pathlib import Path

import numpy as np
import onnx
from pictures import write_pictures
from resnet50 import resnet50

import dryfit

FOLDER = Path("resnet-50-files")
FOLDER.mkdir(exist_ok=True)
MODEL, EDITED = FOLDER / "resnet50.onnx", FOLDER / "resnet50-dla.onnx"
SCALES, ENGINE = FOLDER / "resnet50.cache", FOLDER / "resnet50.engine"
SIZE, PICTURES = 224, 16
BOARD = {"platform": "orin-nx-16", "software": "jetpack-6.1"}

if not MODEL.exists():
    onnx.save(resnet50(SIZE), MODEL)

# %% [markdown]
# ## Where does it run?
#
# `check` builds nothing. It shows where each layer runs, and every rule that a layer violates.

# %%
answer = dryfit.check(MODEL, **BOARD, precision="fp16")
print(answer.summary_line())
for layer in answer.layers:
    for violation in layer.violations("DLA"):
        print(f"{layer.name}: {violation.message} [{violation.rule}]")

# %% [markdown]
# Two layers fall back to the GPU: the global average pooling and the flattening after it. Each fallback costs a copy,
# and the pooling splits the DLA segment in two. `explain` suggests edits of the model and shows what each would save.

# %%
explained = dryfit.explain(MODEL, **BOARD, precision="fp16")
for edit in explained.edits:
    print(edit.text)

# %%
edited = dryfit.apply_edits(MODEL, "average-pool-cascade", EDITED, **BOARD, precision="fp16", force=True)
print(edited.summary_line())
print(dryfit.check(EDITED, **BOARD, precision="fp16").summary_line())

# %% [markdown]
# ## Calibrate
#
# INT8 needs a scale per tensor, computed from sample inputs. Use a few hundred pictures of your own data; this example
# uses 16 crops of the two photographs that ship with scikit-learn.

# %%
pictures = write_pictures(FOLDER / "pictures", count=PICTURES, size=SIZE)
mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
preparation = dryfit.PicturePreparation(mean=tuple(255 * mean), scale=tuple(1 / (255 * deviation)))
calibrated = dryfit.calibrate(EDITED, pictures, output=SCALES, preparation=preparation)
print(calibrated.summary_line())

# %% [markdown]
# ## Estimate
#
# Latencies are estimates from a formula fitted to published figures, each with its error. Nothing is measured.

# %%
for precision in ("fp16", "int8,fp16"):
    cache = SCALES if "int8" in precision else None
    cost = dryfit.estimate(EDITED, **BOARD, precision=precision, calibration_cache=cache)
    print(f"{precision}: latency {cost.network.latency_text}")

# %% [markdown]
# ## Build and run, here
#
# The engine emulates the DLA's arithmetic, rounding included, on this machine. How much does INT8 change the outputs?

# %%
network = dryfit.network_from_onnx(EDITED)
config = dryfit.BuilderConfig()
config.default_device_type = dryfit.DeviceType.DLA
config.set_platform("DLA", "orin-nx-16")
config.set_flag(dryfit.BuilderFlag.INT8)
config.set_flag(dryfit.BuilderFlag.FP16)
config.set_flag(dryfit.BuilderFlag.GPU_FALLBACK)
config.calibration_cache = str(SCALES)
engine = dryfit.Builder().build_engine(network, config)
engine.save(ENGINE)
full = dryfit.Builder().build_engine(dryfit.network_from_onnx(EDITED), dryfit.BuilderConfig())

# %%
int8, fp32 = engine.create_execution_context(), full.create_execution_context()
for path in sorted(pictures.iterdir())[:3]:
    image = preparation.array(path, network.inputs[0])[None]
    exact, result = (context.run({"image": image})["logits"] for context in (fp32, int8))
    noise = 10 * np.log10(np.mean(exact**2) / np.mean((result - exact) ** 2))
    print(f"{path.name}: class {exact.argmax()} in FP32, {result.argmax()} in INT8, signal to noise {noise:.0f} dB")

# %% [markdown]
# ## Take it to the board
#
# A shell script that runs `trtexec`, and the scales as a TensorRT calibration cache. Copy both to the board, with the
# edited model.

# %%
exported = dryfit.export_trtexec(
    EDITED,
    **BOARD,
    device="DLA",
    precision="int8,fp16",
    fallback="GPU",
    calibration_cache=SCALES,
    output=FOLDER / "build.sh",
    scales=FOLDER / "resnet50.trtexec.cache",
)
print(exported.shell)
