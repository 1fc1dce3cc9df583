"""Build the models of a kit on the board, measure them, and pack the results. Needs Python 3.6 and trtexec alone.

`run.sh` calls this file with the program trtexec that it found. The state of each build is one file, which appears
under its name only when the build has ended, so that a call continues where an earlier one was stopped.
"""

import argparse
import array
import collections
import contextlib
import errno
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

Plain = Dict[str, Any]
"""An object of the manifest or of the results."""

FORMAT = "dryfit-board-kit"
WORK, RESULTS = "work", "results.zip"
MODULE = "tensorrt"
"""TensorRT's Python module, which a board may lack."""
FILES = ("log.txt", "layers.json", "profile.json", "times.json", "output.json", "verdicts.json", "state.json")
LEAST_FREE = 64 << 20
"""Bytes that must be free before a build: a verbose log and the JSON of a large network take some 10 MiB."""
LEAST_LEFT = 1 << 20
"""Bytes that must be free after a build, or a file that trtexec wrote last may be cut off."""
VERDICT_SECONDS = 900
TYPE_CODES = {"FLOAT": "f", "INT32": "i", "INT64": "q", "INT8": "b", "UINT8": "B", "BOOL": "B"}


class KitError(Exception):
    """Something that the user can mend; the message says how."""


# Inputs ---------------------------------------------------------------------------------------------------------------


def generated_values(type_name: str, count: int, seed: int) -> "array.array[Any]":
    """Return an array of reproducible values: the same numbers on the board and where the results are read.

    A linear congruential generator modulo 2^32 (a = 1664525, c = 1013904223: Numerical Recipes, 2nd edition, 7.1); the
    upper 16 bits are used. Floating-point values are multiples of 1/256 from -1 to 255/256, which FP16 and INT8 with a
    scale of 1/128 represent well; integers are 0 to 3, booleans 0 or 1.
    """
    state = (seed * 2654435761 + 12345) & 0xFFFFFFFF
    values: "array.array[Any]" = array.array(TYPE_CODES[type_name])
    is_float, is_bool = type_name == "FLOAT", type_name == "BOOL"
    for _ in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        high = state >> 16
        if is_float:
            values.append((high % 512 - 256) / 256.0)
        else:
            values.append(high % 2 if is_bool else high % 4)
    return values


def write_inputs(build: Plain) -> None:
    """Write the raw inputs of a build, where they are not there yet."""
    for one in build["inputs"]:
        count = 1
        for extent in one["shape"]:
            count *= extent
        values = generated_values(one["type"], count, one["seed"])
        if os.path.exists(one["file"]) and os.path.getsize(one["file"]) == count * values.itemsize:
            continue
        make_folder(os.path.dirname(one["file"]))
        write_whole(one["file"], values.tobytes())


# Files ----------------------------------------------------------------------------------------------------------------


def make_folder(path: str) -> None:
    """Make a folder, where it does not exist."""
    if path and not os.path.isdir(path):
        os.makedirs(path)


def write_whole(path: str, data: bytes) -> None:
    """Write a file under another name and rename it, so that it is there whole or not at all."""
    temporary = path + ".tmp"
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)


def write_json(path: str, data: Any) -> None:
    """Write a JSON file, whole or not at all."""
    write_whole(path, json.dumps(data, indent=1).encode("utf-8"))


def private_parts() -> List[Tuple[Any, bytes]]:
    """Return patterns of what names the user or the board in a log, each with what takes its place.

    Folders of users are in paths that libraries print; trtexec 8.6 and newer print the UUID of the GPU.
    """
    here, home = os.getcwd(), os.path.expanduser("~")
    known = [
        (re.escape(one), word) for one, word in ((here, b"."), (home, b"~")) if one.count("/") > 1 or one == "/root"
    ]
    found = [(re.compile(pattern.encode("utf-8", "surrogateescape")), word) for pattern, word in known]
    found.append((re.compile(rb"/(?:home|media|run/user)/[^/\s:;,'\"<>|]+"), b"~"))
    found.append((re.compile(rb"\b(?:GPU|MIG)-[0-9a-fA-F]{8}-[0-9a-fA-F-]{4,}"), b"GPU-removed"))
    return found


def remove_private(path: str) -> None:
    """Rewrite a text file without what names the user or the board."""
    parts = private_parts()
    temporary = path + ".tmp"
    changed = False
    with open(path, "rb") as file, open(temporary, "wb") as written:
        for line in file:
            clean = line
            for pattern, word in parts:
                clean = pattern.sub(word, clean)
            changed = changed or clean != line
            written.write(clean)
    if changed:
        os.rename(temporary, path)
    else:
        os.remove(temporary)


def read_json(path: str) -> Any:
    """Return the contents of a JSON file; None if there is none, or it is not whole."""
    try:
        with open(path, "rb") as file:
            return json.loads(file.read().decode("utf-8"))
    except (OSError, ValueError):
        return None


def read_text(path: str, limit: int = 1 << 16) -> str:
    """Return the text of a file of the system; "" if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(limit).decode("utf-8", "replace").replace("\0", "").strip()
    except OSError:
        return ""


def output_of(command: List[str], seconds: int = 30) -> str:
    """Return what a program prints; "" if there is no such program, or it fails or hangs."""
    try:
        found = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.decode("utf-8", "replace")


# The board ------------------------------------------------------------------------------------------------------------


def whole_number(text: str) -> int:
    """Return a number in a text; 0 if it is none."""
    try:
        return int(text)
    except ValueError:
        return 0


def power_mode() -> Tuple[str, Dict[str, int]]:
    """Return (name of the power mode, limits of its clocks in Hz by name)."""
    name = ""
    for line in output_of(["nvpmodel", "-q"]).splitlines():
        if "Power Mode" in line and ":" in line:
            name = line.split(":", 1)[1].strip()
    limits: Dict[str, int] = {}
    inside = False
    for line in read_text("/etc/nvpmodel.conf", 1 << 20).splitlines():
        model = re.match(r"<\s*POWER_MODEL\s+ID=\d+\s+NAME=(\S+?)\s*>", line.strip())
        if model:
            inside = model.group(1) == name
        words = line.split()
        if inside and len(words) == 3 and words[1] in ("MAX_FREQ", "MAX"):
            value = whole_number(words[2])
            if value > 0:
                # Clocks of the CPU are in kHz, all others in Hz.
                limits[words[0]] = value * 1000 if words[0].startswith("CPU") else value
    return name, limits


def clocks() -> Dict[str, int]:
    """Return the clocks that the kernel shows without root, in Hz."""
    found = {}
    base = "/sys/class/devfreq"
    for name in sorted(os.listdir(base)) if os.path.isdir(base) else ():
        for word in ("cur_freq", "max_freq"):
            value = whole_number(read_text(os.path.join(base, name, word)))
            if value > 0:
                found["%s %s" % (name, word)] = value
    for word in ("scaling_cur_freq", "scaling_max_freq"):
        value = whole_number(read_text("/sys/devices/system/cpu/cpu0/cpufreq/" + word))
        if value > 0:
            found["cpu0 " + word] = value * 1000
    return found


def memory_bytes() -> int:
    """Return the memory of the board; 0 if unknown."""
    found = re.search(r"MemTotal:\s+(\d+) kB", read_text("/proc/meminfo"))
    return int(found.group(1)) * 1024 if found else 0


def python_version() -> str:
    """Return the version of TensorRT's Python module; "" if there is none that can be loaded."""
    code = "import tensorrt; print('version=' + tensorrt.__version__)"
    # At the start of a line: since Python 3.13, the traceback of a failed import quotes the code too.
    found = re.search(r"^version=(\S+)", output_of([sys.executable, "-c", code], 120), re.MULTILINE)
    return found.group(1) if found else ""


def version_in(text: str) -> str:
    """Return the version of TensorRT that a log shows; "" if it shows none."""
    found = re.search(r"TensorRT[ .][Vv]ersion:? (\d+(?:\.\d+)+)", text)
    if found:
        return found.group(1)
    found = re.search(r"\[TensorRT v(\d+)\]", text)
    if not found:
        return ""
    number = int(found.group(1))
    step = 1000 if number < 100000 else 10000
    rest = number % step
    return "%d.%d.%d" % (number // step, rest // 100, rest % 100)


def numbers_of(version: str) -> List[int]:
    """Return a version as a list of numbers."""
    return [int(part) for part in re.findall(r"\d+", version)]


def is_in(version: Sequence[int], since: Sequence[int], until: Optional[Sequence[int]]) -> bool:
    """Return whether a version is in a range."""
    width = max(len(version), len(since), len(until or ()))

    def padded(numbers: Sequence[int]) -> List[int]:
        return list(numbers) + [0] * (width - len(numbers))

    return padded(version) >= padded(since) and (until is None or padded(version) < padded(until))


class Trtexec:
    """The program trtexec: its version, and the options that its help lists."""

    def __init__(self, path: str) -> None:
        if not path:
            raise KitError(
                "trtexec was not found. On JetPack it is /usr/src/tensorrt/bin/trtexec; install it "
                "(apt install libnvinfer-bin), or name it: TRTEXEC=/path/to/trtexec sh run.sh"
            )
        self.path = path
        text = output_of([path, "--help"], 60)
        self.options = set(re.findall(r"--[A-Za-z]\w+", text))
        if "--onnx" not in self.options:
            self.options = set()
        self.version = version_in(text)
        if not self.version:
            for line in output_of(["dpkg-query", "-W", "-f=${Package} ${Version}\n", "libnvinfer*"]).splitlines():
                found = re.match(r"libnvinfer\d* (\d+\.\d+\.\d+)", line)
                self.version = self.version or (found.group(1) if found else "")

    def line(self, manifest: Plain, build: Plain, folder: str) -> List[str]:
        """Return the words of the command line of a build, without the program.

        Where the help lists the options, that decides which of the added ones this version has; else the versions of
        the manifest do.
        """
        version = numbers_of(self.version)
        # The version of a program that does not show it is taken for the newest one.
        lines = [one for one in build["lines"] if not version or is_in(version, one["since"], one["until"])][-1:]
        if not lines:
            known = ", ".join("%s to %s" % (dotted(one["since"]), dotted(one["until"])) for one in build["lines"])
            raise KitError(
                "the kit has no command line for TensorRT %s (it has: %s). Pack it again" % (self.version, known)
            )
        words = list(lines[0]["arguments"])
        for option in manifest["options"]:
            if option["needs_inputs"] and not build["inputs"]:
                continue
            name = option["name"]
            is_listed = is_in(version, option["since"], option["until"]) if version else option["until"] is None
            fits = name in self.options if self.options else is_listed
            if fits:
                value = option["value"].replace("{build}", folder)
                words.append("%s=%s" % (name, value) if value else name)
        # Names with these characters cannot be told apart from the paths: such a model is run on trtexec's own inputs.
        if build["inputs"] and not any(letter in one["name"] for one in build["inputs"] for letter in ":,"):
            words.append("--loadInputs=" + ",".join("%s:%s" % (one["name"], one["file"]) for one in build["inputs"]))
        return words


def dotted(version: Optional[Sequence[int]]) -> str:
    """Return a version as text; "any" for none."""
    return ".".join(str(part) for part in version) if version else "any"


# Verdicts of TensorRT's Python module ---------------------------------------------------------------------------------


def write_verdicts(model: str, path: str, flags: Sequence[str]) -> None:
    """Ask TensorRT's Python module which layers the DLA can run, without a build. Runs in a process of its own."""
    trt = importlib.import_module(MODULE)

    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    explicit = getattr(trt.NetworkDefinitionCreationFlag, "EXPLICIT_BATCH", None)
    network = builder.create_network(0 if explicit is None else 1 << int(explicit))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(model):
        raise SystemExit("the parser does not take the model")
    config = builder.create_builder_config()
    config.default_device_type = trt.DeviceType.DLA
    config.DLA_core = 0
    config.set_flag(trt.BuilderFlag.GPU_FALLBACK)
    for flag in flags:
        config.set_flag(getattr(trt.BuilderFlag, flag))
    layers = [network.get_layer(index) for index in range(network.num_layers)]
    if "INT8" in flags:  # trtexec invents ranges too where it has no calibration
        tensors = [network.get_input(index) for index in range(network.num_inputs)]
        tensors += [layer.get_output(index) for layer in layers for index in range(layer.num_outputs)]
        for tensor in tensors:
            with contextlib.suppress(Exception):  # shape tensors have no range
                tensor.set_dynamic_range(-4.0, 4.0)
    found = [
        {
            "layer": layer.name,
            "type": str(layer.type).split(".")[-1],
            "on_dla": bool(config.can_run_on_DLA(layer)),
        }
        for layer in layers
    ]
    write_json(path, found)


def ask_verdicts(build: Plain, words: Sequence[str], folder: str) -> str:
    """Ask the Python module in another process, which may crash; return why there is no answer, "" if there is one."""
    flags = [name.upper() for name in ("fp16", "int8") if "--" + name in words]
    command = [
        sys.executable,
        os.path.abspath(__file__),
        "--verdicts",
        build["model"],
        os.path.join(folder, "verdicts.json"),
    ]
    log = os.path.join(folder, "verdicts.log")
    with open(log, "wb") as stream:
        try:
            code = subprocess.call(
                command + flags,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                timeout=VERDICT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return "TensorRT's Python module did not answer within %d s" % VERDICT_SECONDS
    return "" if code == 0 else "TensorRT's Python module failed with exit code %d" % code


# Builds ---------------------------------------------------------------------------------------------------------------


def state_of(build: Plain) -> Optional[Plain]:
    """Return the state of a build that has ended; None for one that has not."""
    state: Optional[Plain] = read_json(os.path.join(WORK, build["id"], "state.json"))
    return state


def require_space() -> None:
    """Refuse to start where the disk is nearly full.

    Raises:
        KitError: It is.
    """
    free = shutil.disk_usage(".").free
    if free < LEAST_FREE:
        raise KitError(
            "the disk is nearly full: %d MiB are free, %d are needed. Make room and call run.sh again: it continues"
            % (free >> 20, LEAST_FREE >> 20)
        )


def run_build(manifest: Plain, build: Plain, trtexec: Trtexec, has_python: bool) -> Plain:
    """Run one build in a folder that gets its name only when the build has ended."""
    require_space()
    folder, final = os.path.join(WORK, build["id"] + ".unfinished"), os.path.join(WORK, build["id"])
    if os.path.isdir(folder):
        shutil.rmtree(folder)  # left behind by a process that was killed
    make_folder(folder)
    started = time.time()
    note, code, words = "", None, []
    try:
        write_inputs(build)
        words = trtexec.line(manifest, build, folder)
        if has_python:
            note = ask_verdicts(build, words, folder)
        code = run_trtexec(trtexec.path, words, os.path.join(folder, "log.txt"))
        for name in os.listdir(folder):
            remove_private(os.path.join(folder, name))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise KitError("the disk is full (%s). Make room and call run.sh again: it continues" % error.strerror)
        note = "%s: %s" % (error.strerror, os.path.basename(error.filename or ""))
    free = shutil.disk_usage(".").free
    if code is not None and free < (LEAST_LEFT if code == 0 else LEAST_FREE):
        raise KitError("the disk is full. Make room and call run.sh again: it runs %s again" % build["id"])
    state = {
        "state": "done" if code == 0 else "failed",
        "exit_code": code,
        "seconds": time.time() - started,
        "arguments": words,
        "note": note,
    }
    write_json(os.path.join(folder, "state.json"), state)
    for name in os.listdir(folder):
        if name not in FILES:
            os.remove(os.path.join(folder, name))
    if os.path.isdir(final):
        shutil.rmtree(final)
    os.rename(folder, final)
    return state


def run_trtexec(program: str, words: List[str], log: str) -> int:
    """Run trtexec with its log in a file; a signal that stops the kit stops it too.

    Raises:
        OSError: The log cannot be written, or the program cannot be started.
    """
    with open(log, "wb") as stream:
        # The log begins with the words of the command line: its first one is the same wherever the program is.
        process = subprocess.Popen(
            ["trtexec", *words], executable=program, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT
        )
        try:
            return process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise


def board_facts(trtexec: Trtexec, python_tensorrt: str) -> Plain:
    """Return what the results say about the board."""
    mode, limits = power_mode()
    return collections.OrderedDict(
        model=read_text("/proc/device-tree/model"),
        release=read_text("/etc/nv_tegra_release").split("\n")[0],
        kernel=os.uname().release,
        tensorrt=trtexec.version,
        python_tensorrt=python_tensorrt,
        power_mode=mode,
        power_limits=limits,
        clocks=clocks(),
        memory_bytes=memory_bytes(),
    )


# Durations ------------------------------------------------------------------------------------------------------------


def duration(seconds: float) -> str:
    """Return a time in words."""
    if seconds < 90:
        return "%d s" % max(1, round(seconds))
    return "%d min" % round(seconds / 60) if seconds < 5400 else "%.1f h" % (seconds / 3600)


def expected_seconds(manifest: Plain, build: Plain, measured: Sequence[Tuple[int, float]]) -> float:
    """Return how long a build will take.

    Before the first build has ended: the measurement, and the estimate of the kit for the build. Then the mean time per
    layer of the builds that have ended takes the place of that estimate.
    """
    runs = manifest["measured_seconds"] if build["inputs"] else 0
    per_layer = float(manifest["seconds_per_layer"])
    if measured:
        layers = sum(layers for layers, _ in measured)
        per_layer = max(sum(seconds for _, seconds in measured), 0.0) / max(layers, 1)
    return float(runs + per_layer * build["layers"])


def measured_builds(manifest: Plain) -> List[Tuple[int, float]]:
    """Return (layers, seconds without the measurement) of each build that has ended."""
    found = []
    for build in manifest["builds"]:
        state = state_of(build)
        if state is not None and state["state"] == "done":
            runs = manifest["measured_seconds"] if build["inputs"] else 0
            found.append((build["layers"], state["seconds"] - runs))
    return found


# Results --------------------------------------------------------------------------------------------------------------


def pack(manifest: Plain) -> None:
    """Say what the results contain, and pack them.

    Raises:
        KitError: The disk is full.
    """
    print()
    print("%s will contain:" % RESULTS)
    for line in manifest["contents"]:
        print("  * " + line)
    print("Its files are in the folder %s, to be looked at before. Nothing is sent anywhere." % WORK)
    temporary = RESULTS + ".tmp"
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, True) as archive:
            archive.write("kit.json", "kit.json")
            archive.write(os.path.join(WORK, "board.json"), "board.json")
            kept: Set[str] = set()
            for build in manifest["builds"]:
                folder = os.path.join(WORK, build["id"])
                for name in FILES if state_of(build) is not None else ():
                    path = os.path.join(folder, name)
                    if os.path.isfile(path):
                        archive.write(path, "builds/%s/%s" % (build["id"], name))
                if build["purpose"] == "probe" and build["model"] not in kept:
                    kept.add(build["model"])
                    archive.write(build["model"], build["model"])
        os.rename(temporary, RESULTS)
    except OSError as error:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise KitError("%s cannot be written: %s. Make room and call: sh run.sh --pack" % (RESULTS, error.strerror))
    print("Packed %s: %d KiB." % (RESULTS, os.path.getsize(RESULTS) // 1024 + 1))


# The command ----------------------------------------------------------------------------------------------------------


def show(manifest: Plain, trtexec: Trtexec) -> None:
    """List the builds, how long they take, and what the results contain."""
    measured = measured_builds(manifest)
    total = 0.0
    for build in manifest["builds"]:
        state = state_of(build)
        seconds = expected_seconds(manifest, build, measured)
        total += seconds if state is None else 0.0
        words = "about " + duration(seconds) if state is None else state["state"]
        print("%-24s %-12s %s" % (build["id"], words, build["title"]))
    basis = "by the builds that have ended" if measured else "estimated by the number of layers"
    print("Still to do: about %s (%s)." % (duration(total), basis) if total else "All builds have ended.")
    print("TensorRT %s, %s" % (trtexec.version or "of an unknown version", trtexec.path))
    print("%s will contain:" % RESULTS)
    for line in manifest["contents"]:
        print("  * " + line)


def run_all(manifest: Plain, trtexec: Trtexec, again: Sequence[str]) -> int:
    """Run the builds that have not ended; return the number of those that failed."""
    has_python = python_version()
    make_folder(WORK)
    facts = board_facts(trtexec, has_python)
    write_json(os.path.join(WORK, "board.json"), facts)
    if not has_python:
        print("TensorRT's Python module is not installed: the verdicts on layers come from the logs alone.")
    waiting = [build for build in manifest["builds"] if state_of(build) is None or build["id"] in again]
    for number, build in enumerate(waiting):
        measured = measured_builds(manifest)
        left = sum(expected_seconds(manifest, one, measured) for one in waiting[number:])
        print(
            "[%d of %d] %s: %s (about %s left)"
            % (number + 1, len(waiting), build["id"], build["title"], duration(left))
        )
        sys.stdout.flush()
        state = run_build(manifest, build, trtexec, bool(has_python))
        told = "done" if state["state"] == "done" else "failed: its log is in the results"
        print(
            "    %s after %s%s"
            % (told, duration(state["seconds"]), ". Note: " + state["note"] if state["note"] else "")
        )
    for build in manifest["builds"]:
        facts["tensorrt"] = facts["tensorrt"] or version_in(read_text(os.path.join(WORK, build["id"], "log.txt")))
    write_json(os.path.join(WORK, "board.json"), facts)
    states = [state_of(build) for build in manifest["builds"]]
    return sum(state["state"] == "failed" for state in states if state is not None)


def manifest_here() -> Plain:
    """Return the manifest of this kit.

    Raises:
        KitError: It is missing or damaged.
    """
    manifest = read_json("kit.json")
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise KitError("kit.json is missing or damaged: unpack the kit again")
    return manifest


def run_command(given: argparse.Namespace) -> int:
    """Do what the arguments request; return the exit code.

    Raises:
        KitError: Something must be mended first.
        OSError: A file cannot be read or written.
    """
    manifest = manifest_here()
    ids = [build["id"] for build in manifest["builds"]]
    unknown = [one for one in given.again if one not in ids]
    if unknown:
        raise KitError("there is no build %s (builds: %s)" % (unknown[0], ", ".join(ids)))
    failed = 0
    if given.list:
        show(manifest, Trtexec(given.trtexec))
        return 0
    if not given.pack:
        failed = run_all(manifest, Trtexec(given.trtexec), given.again)
    elif not os.path.isfile(os.path.join(WORK, "board.json")):
        raise KitError("nothing has been built yet: call sh run.sh")
    pack(manifest)
    if failed:
        print("%d of %d builds failed. That is a result too: the logs show why." % (failed, len(ids)))
    return 1 if failed else 0


def main(arguments: List[str]) -> int:
    """Run the command; return the exit code: 0, 1 if a build failed, 2 if something must be mended first."""
    if arguments[:1] == ["--verdicts"]:
        write_verdicts(arguments[1], arguments[2], arguments[3:])
        return 0
    parser = argparse.ArgumentParser(prog="run.sh", description="Build the models of this kit on the board.")
    parser.add_argument("--trtexec", default="", help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="show what will be done, and do nothing")
    parser.add_argument("--pack", action="store_true", help="pack what there is")
    parser.add_argument("--again", action="append", default=[], metavar="ID", help="run this build again")
    try:
        return run_command(parser.parse_args(arguments))
    except KitError as error:
        sys.stderr.write("Stopped: %s\n" % error)
        return 2
    except OSError as error:
        sys.stderr.write("Stopped: %s: %s. Call run.sh again: it continues\n" % (error.filename or ".", error.strerror))
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("Stopped. Call run.sh again: it continues\n")
        return 2


def stop(*_: Any) -> None:
    """Stop as at the keyboard."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    sys.exit(main(sys.argv[1:]))
