"""scikit-image's inpainting and denoising, in an environment of its own: arrays in one file, answers in another."""

from __future__ import annotations

import sys
import time
from importlib.metadata import version

import numpy as np


def main() -> None:
    """Fill in and denoise what the first file has, and write the second."""
    from skimage import restoration  # pyright: ignore[reportMissingImports]

    asked, answers = np.load(sys.argv[1]), {}
    spent = {}
    for name in (key.removeprefix("image_") for key in asked if key.startswith("image_")):
        image, missing = asked[f"image_{name}"], asked[f"missing_{name}"]
        started = time.process_time()
        filled = restoration.inpaint_biharmonic(np.where(missing, 0.0, image), missing) if missing.any() else image
        spent[f"{name}_biharmonic"] = time.process_time() - started
        answers[f"{name}_biharmonic"] = filled
        for weight in asked["weights"]:
            for label, settings in (("", {}), ("_long", {"eps": 1e-12, "max_num_iter": 20000})):
                if label and missing.any():
                    continue
                started = time.process_time()
                answers[f"{name}_tv{label}_{weight:g}"] = restoration.denoise_tv_chambolle(filled, weight, **settings)
                spent[f"{name}_tv{label}_{weight:g}"] = time.process_time() - started
    np.savez(sys.argv[2], version=version("scikit-image"), **answers, **{f"cpu_{k}": v for k, v in spent.items()})


if __name__ == "__main__":
    main()
