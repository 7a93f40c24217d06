"""Images with half of their pixels missing: priors of `quenched.fields` beside scikit-image, in one run.

Strengths of ours and weights of scikit-image are chosen on one image, the flower, and reported on another, China; both
are those of scikit-learn, grey, 64 x 64 points from 0 to 1. Of each, half of the pixels are seen, with Gaussian noise.
Then digits of two classes, with the mean image of each class as a template. Run `python -m benchmarks.images`; it
writes the section of `docs/benchmarks.md`, `docs/images/half_missing.png` and takes some minutes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_digits, load_sample_image

from benchmarks.environments import python_of
from benchmarks.page import IMAGES, PAGE, machine, replaced, table
from quenched import fields as f

Seen = tuple[np.ndarray, np.ndarray]
SIDE, NOISE, THUMBNAIL = 64, 0.05, 8
"""Points along an edge, standard deviation of the noise, and points along the edge of a thumbnail."""
MASKS = {"pixels": 1, "blocks": 8}
"""Half of all pixels is missing, or half of all blocks with such an edge."""
WEIGHTS = (0.005, 0.01, 0.02, 0.05, 0.1)
"""Of total variation in scikit-image."""
DIGITS, DIGIT_NOISE = (3, 8), 0.1
STRENGTHS = np.geomspace(1, 1000, 7)
"""Among which those of ours are chosen, as multiples of what each prior has."""
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "half_missing.png"
HEAD = """## Images with half of their pixels missing

Grey images of 64 x 64 points between 0 and 1 with Gaussian noise of 0.05; half of the pixels, or half of the blocks of
8 x 8 pixels, are seen. Strengths of ours (from 1 to 1,000) and weights of scikit-image were chosen on another image by
the same error."""
"""What was done."""
WORDS = """Errors are root mean squares at missing pixels. Where single pixels are missing, smoothness is enough: the
priors differ by a few per cent, the cup aside, and scikit-image is better, with biharmonic inpainting and denoising after
it, and faster. The nearest of ours has second derivatives and total variation in one prior. Where blocks are missing,
biharmonic functions overshoot, and what else is known decides: a thumbnail, the means of 8 x 8 blocks, or one of two
thumbnails without saying which. Cups make flat regions with sharp edges, which photographs do not have.

![China with half of its blocks missing](images/half_missing.png)"""
"""What the page says about the numbers."""


def grey(name: str) -> np.ndarray:
    """A sample image of scikit-learn: the largest square of its middle, as means of blocks."""
    whole = load_sample_image(name).mean(axis=2) / 255
    block = min(whole.shape) // SIDE
    top, left = ((n - block * SIDE) // 2 for n in whole.shape)
    square = whole[top : top + block * SIDE, left : left + block * SIDE]
    return square.reshape(SIDE, block, SIDE, block).mean(axis=(1, 3))


def thumbnail(image: np.ndarray) -> np.ndarray:
    """An image of which only the means of large blocks are known, smoothed."""
    block = SIDE // THUMBNAIL
    blocks = np.kron(image.reshape(THUMBNAIL, block, THUMBNAIL, block).mean(axis=(1, 3)), np.ones((block, block)))
    return gaussian_filter(blocks, block / 2, mode="nearest")


def lattice(side: int) -> f.Grid:
    """Pixels at distance 1."""
    return f.Grid(given=[f.Axis(0, side - 1, points=side), f.Axis(0, side - 1, points=side)])


def halved(image: np.ndarray, noise: float, seed: int, share: float = 0.5, block: int = 1) -> Seen:
    """The image with noise, and which of its pixels are missing: single ones, or square blocks of them."""
    random = np.random.default_rng(seed)
    cells = np.zeros(image.size // block**2, dtype=bool)
    cells[random.permutation(cells.size)[: round(cells.size * (1 - share))]] = True
    missing = np.kron(cells.reshape(image.shape[0] // block, -1), np.ones((block, block), dtype=bool))
    return image + noise * random.normal(size=image.shape), missing


def problem(image: np.ndarray, missing: np.ndarray, noise: float, prior: f.Prior) -> f.Problem:
    """What is seen of an image, and what is known besides."""
    seen = np.argwhere(~missing).astype(float)
    return f.Problem(f.GaussianData(seen, image[~missing], noise**2), f.Direct(prior.grid), prior)


def priors(grid: f.Grid, templates: list[np.ndarray]) -> dict[str, Callable[[float], f.Prior]]:
    """Ours, by a strength."""
    gradient = f.Gradient(grid)
    bends, (down, across) = f.Laplacian(grid) ** 2, (f.Derivative(grid, axis, 2) for axis in grid.axes)
    near = [lambda a, t=t: f.Gaussian(a * f.Laplacian(grid) + f.Mass(grid, 0.02 * a), mean=t) for t in templates]
    return {
        "Laplacian": lambda a: f.Gaussian(a * f.Laplacian(grid)),
        "square of the Laplacian": lambda a: f.Gaussian(a * bends),
        "Huber": lambda a: f.Potential(gradient, f.Huber(a, 0.05), together=True),
        "total variation": lambda a: f.Potential(gradient, f.AbsoluteValue(0.1 * a), together=True),
        "Huber of second differences": lambda a: (
            f.Potential(down, f.Huber(a, 0.1)) & f.Potential(across, f.Huber(a, 0.1))
        ),
        "total variation & square of the Laplacian": lambda a: (
            f.Potential(gradient, f.AbsoluteValue(0.05 * a), together=True) & f.Gaussian(0.2 * a * bends)
        ),
        "cup": lambda a: f.Potential(gradient, f.Cup(0.01 * a, 0.1, 2.0), together=True),
        "near the thumbnail": near[0],
        "near the wrong thumbnail": near[1],
        "near one of the two thumbnails": lambda a: near[0](a) | near[1](a),
    }


def filled(
    image: np.ndarray, missing: np.ndarray, noise: float, prior: f.Prior, method: f.Method | None = None
) -> tuple[np.ndarray, float, Any]:
    """The field, processor seconds, and the fit."""
    asked = problem(image, missing, noise, prior)
    started = time.process_time()
    if isinstance(prior, f.Either):
        fit = f.regress(asked)
    else:  # a Gaussian on so many points is solved by factoring a sparse matrix
        fit = f.solve(asked, f.Reweighting() if isinstance(prior, f.Gaussian) else method)
    return fit.field, time.process_time() - started, fit


def error(field: np.ndarray, true: np.ndarray, where: np.ndarray) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean((field - true)[where] ** 2)))


def ask_peer(images: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, np.ndarray]:
    """What scikit-image makes of some images."""
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder) / "question.npz", Path(folder) / "answer.npz"
        arrays = {f"{part}_{name}": array for name, pair in images.items()
                  for part, array in zip(("image", "missing"), pair, strict=True)}  # fmt: skip
        np.savez(question, weights=np.array(WEIGHTS), **arrays)
        command = [python_of("images"), "-m", "benchmarks.sides.scikit_image", question, answer]
        subprocess.run(command, check=True, cwd=Path(__file__).resolve().parents[1])
        with np.load(answer) as found:
            return {name: found[name] for name in found}


def inpainting() -> tuple[str, dict[str, np.ndarray]]:
    """The table of errors at missing pixels, and the pictures of the second mask."""
    china, flower = grey("china.jpg"), grey("flower.jpg")
    grid, seen = lattice(SIDE), {}
    for mask, block in MASKS.items():
        for name, image, seed in (("flower", flower, 0), ("china", china, 1)):
            seen[f"{name}_{mask}"] = halved(image, NOISE, seed, block=block)
    found = ask_peer(seen)
    lines: dict[str, list[str]] = {}
    last = list(MASKS)[-1]
    image, missing = seen[f"china_{last}"]
    pictures = {"what is there": china, "what is seen": np.where(missing, np.nan, image)}
    for mask in MASKS:
        (other, hidden), (image, missing), best = seen[f"flower_{mask}"], seen[f"china_{mask}"], 1.0
        for name in priors(grid, [china, china]):
            if "wrong" not in name and "two" not in name:  # these have the strength of the right thumbnail
                tuned = priors(grid, [thumbnail(flower), thumbnail(china)])[name]
                trials = [filled(other, hidden, NOISE, tuned(a))[0] for a in STRENGTHS]
                best = STRENGTHS[np.argmin([error(field, flower, hidden) for field in trials])]
            prior = priors(grid, [thumbnail(china), thumbnail(flower)])[name](best)
            field, seconds, fit = filled(image, missing, NOISE, prior)
            wrong = error(field, china, missing)
            note = f"China has {fit.probabilities[0]:.3f}" if isinstance(prior, f.Either) else _note(fit)
            lines.setdefault(name, []).extend([f"{wrong:.4f}", f"{seconds:.2f} s", f"{best:.3g}; {note}"])
            if mask == last:
                pictures[f"{name}: {wrong:.3f}"] = field
            print(mask, name, lines[name][-3:], flush=True)
        weight = min(WEIGHTS, key=lambda w: error(found[f"flower_{mask}_tv_{w:g}"], flower, hidden))
        for key, label in (
            ("biharmonic", "inpaint_biharmonic"),
            (f"tv_{weight:g}", "the same, then denoise_tv_chambolle"),
        ):
            field = found[f"china_{mask}_{key}"]
            wrong = error(field, china, missing)
            cpu = float(found[f"cpu_china_{mask}_biharmonic"])
            cpu += float(found[f"cpu_china_{mask}_{key}"]) if "tv" in key else 0.0
            name = f"scikit-image: {label}"
            note = f"weight {weight:g}" if "tv" in key else ""
            lines.setdefault(name, []).extend([f"{wrong:.4f}", f"{cpu:.2f} s", note])
            if mask == last:
                pictures[f"{name}: {wrong:.3f}".replace(", then", ",\nthen")] = field
            print(mask, name, lines[name][-3:], flush=True)
    header = ["prior"] + [f"{mask}: {what}" for mask in MASKS for what in ("error", "processor time", "strength")]
    said = f"scikit-image {found['version']}. The image varies by {np.std(china):.3f}."
    return said + "\n\n" + table(header, [(name, *line) for name, line in lines.items()]), pictures


def _note(fit: Any) -> str:
    """How well it was solved, and how many minima were met."""
    minima = f"{len(fit.minima)} minima met" if len(fit.minima) > 1 else ""
    gap = f"gap {fit.gap:.1g} of the energy {fit.energy:.5g}" if fit.gap is not None else f"residual {fit.kkt:.1g}"
    return "; ".join(part for part in (gap, minima) if part)


def denoising() -> str:
    """Total variation with all pixels seen: the same energy as scikit-image's, and who gets lower."""
    china, grid, lines = grey("china.jpg"), lattice(SIDE), []
    noisy, missing = halved(china, 0.1, 2, share=1.0)
    found = ask_peer({"whole": (noisy, missing)})

    def energy(field: np.ndarray, weight: float) -> float:
        steps = f.Gradient(grid).respond(np.asarray(field, dtype=np.float64))
        return 0.5 * float(np.sum((field - noisy) ** 2)) + weight * float(np.sum(np.hypot(*steps)))

    for weight in (0.05, 0.1):
        prior = f.Potential(f.Gradient(grid), f.AbsoluteValue(weight), together=True)
        field, seconds, fit = filled(noisy, missing, 1.0, prior, f.Splitting(accuracy=1e-9))
        ours = energy(field, weight)
        lines.append((f"ours, weight {weight:g}", f"{ours:.6f}", f"gap {fit.gap:.1g}", f"{error(field, china, ~missing):.4f}",
                      f"{seconds:.2f} s"))  # fmt: skip
        for key, label in (("tv", "denoise_tv_chambolle, defaults"), ("tv_long", "the same, 20,000 iterations")):
            theirs = found[f"whole_{key}_{weight:g}"]
            above = energy(theirs, weight) - ours
            cpu = float(found[f"cpu_whole_{key}_{weight:g}"])
            apart = float(np.max(np.abs(theirs - field)))
            lines.append((f"scikit-image: {label}", f"{energy(theirs, weight):.6f}",
                          f"{above:+.1g} from ours, fields differ by {apart:.1g}",
                          f"{error(theirs, china, ~missing):.4f}", f"{cpu:.2f} s"))  # fmt: skip
    print(*lines, sep="\n", flush=True)
    return table(("total variation, all pixels seen", "energy", "", "error", "processor time"), lines)


def digits() -> str:
    """Digits of two classes with half of their pixels missing, and the mean image of each class as a template."""
    table_, grid = load_digits(), lattice(8)
    images, labels = table_.images / 16, table_.target
    half = np.arange(len(images)) < len(images) // 2
    means = [images[half & (labels == one)].mean(axis=0) for one in DIGITS]
    spread = np.mean([np.var(images[half & (labels == one)], axis=0).mean() for one in DIGITS])
    chosen = np.flatnonzero(~half & np.isin(labels, DIGITS))[:100]
    operator = 0.5 / spread * f.Laplacian(grid) + f.Mass(grid, 0.5 / spread)
    near = [f.Gaussian(operator, mean=mean) for mean in means]
    rows: dict[str, list[tuple[float, float]]] = {}
    asked = {str(i): halved(images[i], DIGIT_NOISE, int(i)) for i in chosen}
    found = ask_peer(asked)
    for i in chosen:
        image, missing = asked[str(i)]
        right = int(labels[i] == DIGITS[1])
        both = f.regress(problem(image, missing, DIGIT_NOISE, near[0] | near[1]))
        tv = f.Potential(f.Gradient(grid), f.AbsoluteValue(2.0), together=True)
        fields = {
            "Laplacian": f.solve(problem(image, missing, DIGIT_NOISE, f.Gaussian(3.0 * f.Laplacian(grid)))).field,
            "total variation": f.solve(problem(image, missing, DIGIT_NOISE, tv)).field,
            "near the mean of its class": f.regress(problem(image, missing, DIGIT_NOISE, near[right])).field,
            "near the mean of the other class": f.regress(problem(image, missing, DIGIT_NOISE, near[1 - right])).field,
            "near one of the two means": both.field,
            "scikit-image: inpaint_biharmonic": found[f"{i}_biharmonic"],
        }
        p = float(both.probabilities[right])
        for name, field in fields.items():
            rows.setdefault(name, []).append((error(field, images[i], missing), p))
    lines = [(name, f"{np.mean([e for e, _ in each]):.4f}", f"{np.std([e for e, _ in each]) / len(each) ** 0.5:.4f}")
             for name, each in rows.items()]  # fmt: skip
    p = np.array([p for _, p in rows["near one of the two means"]])
    said = ("Strengths are set by hand here. "
            f"The right one of the two templates has a mean probability of {p.mean():.3f}; it is the more probable one "
            f"for {np.sum(p > 0.5)} of {len(p)} digits, Brier score {np.mean((1 - p) ** 2):.3f}.")  # fmt: skip
    print(*lines, said, sep="\n", flush=True)
    return (
        table((f"digits {DIGITS[0]} and {DIGITS[1]}", "mean error at missing pixels", "standard error"), lines)
        + "\n\n"
        + said
    )


def draw(pictures: dict[str, np.ndarray]) -> None:
    """All of them side by side."""
    from matplotlib import pyplot as plt

    columns = 4
    rows = -(-len(pictures) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(2.2 * columns, 2.45 * rows), dpi=120, layout="constrained")
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[], facecolor="#9ecae1")
        axis.spines[:].set_visible(False)
    for axis in axes.flat[len(pictures) :]:
        axis.axis("off")
    for axis, (name, image) in zip(axes.flat, pictures.items(), strict=False):
        axis.imshow(np.ma.masked_invalid(image), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axis.set_title(name.replace(" & ", " &\n"), fontsize=7.5)
    figure.savefig(PICTURE)
    plt.close(figure)


def main() -> None:
    """Measure, draw and write."""
    table_, pictures = inpainting()
    draw(pictures)
    body = "\n\n".join([HEAD, f"Measured on {machine()}", table_, WORDS, denoising(), digits()])
    if "--dry" not in sys.argv:
        PAGE.write_text(replaced(PAGE.read_text(), IMAGES, body))
    print(body)


if __name__ == "__main__":
    main()
