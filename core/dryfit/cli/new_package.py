"""A new package with a plugin in it: its names, and its files from the templates."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from dryfit.errors import ConfigError, PluginError
from dryfit.plugins.discovery import API_LEVEL, CALIBRATORS, LAYERS, TARGETS, module_of
from dryfit.version import __version__

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

KINDS = ("target", "layer", "calibrator")
"""What a package can bring; each has a folder of templates."""

_DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_SUFFIX = ".jinja"


def package_names(kind: str, name: str) -> dict[str, str]:
    """The words that the templates of a kind need, for a package of this name.

    Raises:
        ConfigError: no distribution or module can have the name, or something has it already.
    """
    words = [word.lower() for word in re.split(r"[-_.]+", name) if word]
    module = "_".join(words)
    if not _DISTRIBUTION.fullmatch(name) or not module.isidentifier() or keyword.iskeyword(module):
        close = "-".join(re.sub(r"^[^a-z]+|[^a-z0-9]+", "", word.lower()) for word in re.split(r"[^A-Za-z0-9]+", name))
        raise ConfigError(
            "Invalid package name",
            found=f"{name!r}",
            allowed="letters, digits, `-`, `_` and `.`; a letter first, a letter or digit last; no word of Python",
            remedy=f"Try {close.strip('-')!r}" if re.fullmatch(r"-?[a-z][a-z0-9-]*", close) else None,
        )
    if module in sys.stdlib_module_names or importlib.util.find_spec(module) is not None:
        raise ConfigError(
            "A module with this name already exists", found=f"{module!r}", remedy="Choose another name for the package"
        )
    title = " ".join(word.capitalize() for word in words)
    common = {
        "distribution": "-".join(words),
        "module": module,
        "title": title,
        "dryfit_version": __version__,
        "api_level": str(API_LEVEL),
        "like": "",
    }
    match kind:
        case "target":
            return {**common, **_target_names(words, title)}
        case "layer":
            return {**common, **_layer_names(words)}
        case _:
            return {**common, **_calibrator_names("-".join(words))}


def _target_names(words: list[str], title: str) -> dict[str, str]:
    from dryfit.plugins import registry

    device = "_".join(words).upper()
    if device in registry.device_names():
        raise ConfigError("A device with this name is already installed", found=device, remedy="Choose another name")
    return {
        "group": TARGETS,
        "entry_name": "-".join(words),
        "attribute": "TARGET",
        "device": device,
        "summary": f"{title} as a device for dryfit",
    }


def _layer_names(words: list[str]) -> dict[str, str]:
    """The first word is the namespace, the others are the layer; a single word is both."""
    plugin_name = "".join(word.capitalize() for word in words[1:] or words)
    return {
        "group": LAYERS,
        "entry_name": f"{words[0]}::{plugin_name}",
        "attribute": "layer",
        "namespace": words[0],
        "plugin_name": plugin_name,
        "summary": f"The layer {plugin_name} for dryfit",
    }


def _calibrator_names(name: str) -> dict[str, str]:
    from dryfit.plugins import registry

    try:
        is_taken = registry.entry(CALIBRATORS, name) is not None
    except PluginError:  # claimed more than once, or switched off: taken all the same
        is_taken = True
    if is_taken:
        raise ConfigError("A calibrator with this name is already installed", found=name, remedy="Choose another name")
    return {
        "group": CALIBRATORS,
        "entry_name": name,
        "attribute": "CALIBRATOR",
        "summary": f"The calibrator {name} for dryfit",
    }


def rendered_files(kind: str, names: Mapping[str, str]) -> dict[str, str]:
    """Path inside the package's folder, with `/`, to text; sorted."""
    import jinja2

    # Nothing of this is HTML, and a name that is missing has to be noticed.
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)  # noqa: S701
    templates = files("dryfit.cli") / "templates"
    found = {}
    for folder in ("every", kind):
        for path, template in _templates(templates / folder):
            place = path.removesuffix(_SUFFIX).replace("MODULE", names["module"])
            found[place] = environment.from_string(template.read_text(encoding="utf-8")).render(names)
    return dict(sorted(found.items()))


def files_like(like: str, names: Mapping[str, str]) -> dict[str, str]:
    """Return the files of a target's package under new names: `rendered_files`, with the modules of an installed one.

    The device and the module are renamed wherever they are words, or parts of words that `_` separates; the texts are
    otherwise those of the other package, under its license.

    Args:
        like: device of an installed target, such as `ethos-u`.
        names: see `package_names`, for a target.

    Raises:
        ConfigError: The modules of the other package cannot be read.
        UnknownNameError: No installed package has the device.
    """
    from dryfit.plugins import registry

    device = registry.target(like).device
    entry = registry.entry(TARGETS, device)
    package = "" if entry is None else (module_of(entry.value) or "").partition(".")[0]
    attribute = "TARGET" if entry is None else entry.value.rpartition(":")[2]
    try:
        modules = list(_sources(files(package))) if package else []
    except (ImportError, OSError, TypeError) as error:
        raise ConfigError(
            "The modules of this target cannot be read",
            found=f"{package!r}: {error}",
            remedy="Leave out --like, which writes a small package",
        ) from error
    if not modules:
        raise ConfigError(
            "This target has no package of its own",
            found=device,
            remedy="Choose another target with --like, or leave it out",
        )
    words = {package: names["module"], device: names["device"], device.lower(): names["device"].lower()}
    rendered = rendered_files("target", {**names, "attribute": attribute, "like": device})
    found = {path: text for path, text in rendered.items() if not path.startswith("src/")}
    for path, text in modules:
        renamed = text
        for old, new in words.items():
            renamed = re.sub(rf"(?<![A-Za-z0-9]){re.escape(old)}(?![A-Za-z0-9])", new, renamed)
        found[f"src/{names['module']}/{path}"] = renamed
    return dict(sorted(found.items()))


def _sources(folder: Traversable, before: str = "") -> Iterator[tuple[str, str]]:
    for one in folder.iterdir():
        if one.is_dir() and not one.name.startswith("__"):
            yield from _sources(one, f"{before}{one.name}/")
        elif one.name.endswith((".py", ".pyi")):
            yield before + one.name, one.read_text(encoding="utf-8")


def _templates(folder: Traversable, before: str = "") -> Iterator[tuple[str, Traversable]]:
    for one in folder.iterdir():
        if one.is_dir():
            yield from _templates(one, f"{before}{one.name}/")
        elif one.name.endswith(_SUFFIX):
            yield before + one.name, one


def write_package(folder: Path, contents: Mapping[str, str]) -> None:
    """Write a new folder, whole or not at all.

    Raises:
        ConfigError: the folder is there already, or cannot be made.
    """
    if folder.exists() or folder.is_symlink():
        raise ConfigError(
            "The folder must not exist yet",
            found=f"{folder} is there already",
            remedy="Choose another name or --directory",
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise ConfigError(
            "The folder cannot be created",
            where=str(folder),
            found=error.strerror,
            remedy="Choose a folder that you can write to with --directory",
        ) from error
    try:
        (temporary / folder.name).mkdir()  # with the usual permissions, which a temporary folder has not
        for path, text in contents.items():
            place = temporary / folder.name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        (temporary / folder.name).rename(folder)
    except OSError as error:
        raise ConfigError(
            "The folder cannot be written",
            where=str(folder),
            found=error.strerror,
            remedy="Free space or choose another folder with --directory; remove the incomplete folder first",
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
