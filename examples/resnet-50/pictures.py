"""Pictures for calibration where none of the user's own are at hand: pieces of scikit-learn's two photographs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images


def write_pictures(folder: Path, count: int, size: int = 224) -> Path:
    """Write square pieces of the photographs as PNG files; returns the folder."""
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(0)
    photographs = load_sample_images().images
    for number in range(count):
        photograph = photographs[number % len(photographs)]
        top, left = (int(random.integers(extent - size)) for extent in photograph.shape[:2])
        Image.fromarray(photograph[top : top + size, left : left + size]).save(folder / f"{number:02}.png")
    return folder


if __name__ == "__main__":
    print(write_pictures(Path("pictures"), count=16))
