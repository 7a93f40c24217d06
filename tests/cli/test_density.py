"""`quenched density`: what is read, said, drawn and saved, and what is refused in one sentence."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from matplotlib.image import imread

import quenched
from quenched.cli import density
from quenched.estimators import FieldDensity

FOUR = 5e-4  # numbers are printed with four digits


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def data(tmp_path):
    """A table of 200 rows: a price, with noise that grows with the area; a constant, words and gaps."""
    draw = np.random.default_rng(0)
    area = draw.uniform(0, 10, 200)
    price = 100 * np.sin(area / 2) + (5 + 4 * area) * draw.normal(size=200)
    lines = [f"{a:.6f},{p:.6f},7,{'uvw'[i % 3]},{'' if i == 5 else i}"
             for i, (a, p) in enumerate(zip(area, price, strict=True))]  # fmt: skip
    path = tmp_path / "houses.csv"
    path.write_text("\n".join(["area,price,same,kind,gaps", *lines]) + "\n")
    return path, area, price


def figures(out):
    """The numbers of each line, by its first words."""
    table = {}
    for line in out.splitlines():
        words = [word for word in line.split("  ") if word.strip()]
        numbers = []
        for word in words[1:]:
            try:
                numbers.append(float(word.strip().replace(",", "")))
            except ValueError:
                break
        if numbers:
            table[words[0].strip()] = numbers
    return table


def test_the_density_of_a_column_is_told_drawn_and_saved(run, data, tmp_path):
    path, _, price = data
    code, out, err = run("density", path, "--column", "price", "--plot", tmp_path / "p.png", "--out", tmp_path / "p.nc")
    assert (code, err) == (0, "")
    assert f"{path.name}: 200 rows, density of price" in " ".join(out.split())
    table = figures(out)
    assert list(table) == ["mean", "standard deviation", "median", "5% quantile", "95% quantile", "mode"]
    own = [np.mean(price), np.std(price), np.median(price), np.quantile(price, 0.05), np.quantile(price, 0.95)]
    np.testing.assert_allclose([row[1] for row in table.values() if len(row) > 1], own, rtol=FOUR)
    np.testing.assert_allclose([row[0] for row in table.values()][:5], own, atol=0.15 * np.std(price))
    result = quenched.load(tmp_path / "p.nc")
    np.testing.assert_allclose(
        [result.attrs[name] for name in density.FIGURES], [r[0] for r in table.values()], rtol=FOUR
    )
    assert f"derivative {result.attrs['order']} with strength {result.attrs['strength']:.2g}" in " ".join(out.split())
    assert f"Log-evidence {result.attrs['log_evidence']:.1f}." in out
    assert np.trapezoid(result.density, result.value) == pytest.approx(1, abs=0.01)
    assert bool(((result.density_low < result.density) & (result.density < result.density_high)).all())
    assert np.sum(result.histogram * np.diff(result.edge)) == pytest.approx(1)
    assert (imread(tmp_path / "p.png")[..., :3] < 0.9).any()


def test_a_mixture_of_gaussians_is_called_so(run, tmp_path):
    draw = np.random.default_rng(0)
    lines = [f"{x:.9f}" for x in np.append(draw.normal(0, 0.01, 150), draw.normal(5, 1, 150))]
    (tmp_path / "two.csv").write_text("\n".join(["y", *lines]) + "\n")
    model = FieldDensity().fit(np.array(lines, float))
    assert model.components_ > 1
    code, out, _ = run("density", tmp_path / "two.csv", "--column", "y")
    assert code == 0
    assert f"Chosen by evidence: a mixture of {model.components_} Gaussians." in " ".join(out.split())


def test_the_picture_has_the_density_its_band_where_rows_are_and_a_histogram(run, data, tmp_path):
    path, _, price = data
    run("density", path, "--column", "price", "--out", tmp_path / "p.nc")
    result = quenched.load(tmp_path / "p.nc")
    ax = quenched.plot(result).axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("price", "probability density")
    band = ax.collections[0].get_paths()[0].vertices[:, 0]
    assert price.min() - 1e-9 <= band.min() < band.max() <= price.max() + 1e-9
    lines = {len(line.get_xdata()): line for line in ax.lines}
    np.testing.assert_array_equal(lines[len(result.value)].get_ydata(), result.density)
    np.testing.assert_array_equal(lines[2 * len(result.edge)].get_ydata()[1:-1:2], result.histogram)


def test_the_density_given_another_column(run, data, tmp_path):
    path, area, _ = data
    code, out, err = run(
        "density",
        path,
        "--column",
        "price",
        "--given",
        "area",
        "--out",
        tmp_path / "p.nc",
        "--plot",
        tmp_path / "p.pdf",
    )
    assert (code, err) == (0, "")
    assert "density of price given area" in " ".join(out.split())
    five = [words for line in out.splitlines() if len(words := line.split()) == 5 and words[0][0].isdigit()]
    rows = np.array([[float(word.replace(",", "")) for word in words] for words in five])
    assert rows.shape == (5, 5)
    np.testing.assert_allclose(rows[:, 0], np.linspace(area.min(), area.max(), 5), rtol=FOUR)
    noise = 5 + 4 * rows[:, 0]
    assert np.all(np.abs(rows[:, 1] - 100 * np.sin(rows[:, 0] / 2)) < noise)  # better than one row would know
    np.testing.assert_allclose(rows[:, 4] - rows[:, 3], 2 * 1.645 * noise, rtol=0.4)
    result = quenched.load(tmp_path / "p.nc")
    x, y = result.attrs["strength"]
    assert f"along area with strength {x:.2g}, derivative 3 along price with strength {y:.2g}" in " ".join(out.split())
    ax = quenched.plot(result).axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("area", "price")
    drawn = {len(line.get_xdata()) for line in ax.lines}
    assert {200, result.sizes["given"]} <= drawn
    assert (tmp_path / "p.pdf").stat().st_size > 1000


@pytest.mark.parametrize(
    ("text", "low", "high"), [("0,10", 0, 10), ("0,", 0, None), (" , 10 ", None, 10), (",", None, None)]
)
def test_bounds_are_where_the_density_ends(run, data, tmp_path, text, low, high):
    code, out, err = run("density", data[0], "--column", "area", "--bounds", text, "--out", tmp_path / "p.nc")
    proposed = {"0,10": "", "0,": "0,10", " , 10 ": "0,10", ",": "0,10"}[text]  # what was given stays
    assert code == 0
    assert err.count("\n") == bool(proposed)
    assert f"set `--bounds {proposed}`" in err if proposed else not err
    result = quenched.load(tmp_path / "p.nc")
    first, last = float(result.value[0]), float(result.value[-1])
    assert (first == low) is (low is not None)
    assert (last == high) is (high is not None)
    assert (result.attrs.get("lower_bound"), result.attrs.get("upper_bound")) == (low, high)
    said = {
        (0, 10): "lie not below 0 and not above 10.",
        (0, None): "lie not below 0.",
        (None, 10): "lie not above 10.",
    }
    assert said.get((low, high), "") in " ".join(out.split())
    assert ("taken to lie" in out) is ((low, high) in said)
    area = np.loadtxt(data[0], delimiter=",", skiprows=1, usecols=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it proposes bounds, as the command did
        found = FieldDensity(bounds=(low, high)).fit(area)
    np.testing.assert_array_equal(result.density, found.density_)


def test_without_a_file_there_are_irises(run):
    code, out, _ = run("density")
    assert code == 0
    assert "150 rows, density of petal length (cm)" in " ".join(out.split())
    assert figures(out)["mean"][1] == pytest.approx(3.758)


BAD = {
    "no such file": (["nowhere.csv", "--column", "a"], "nowhere.csv is not there"),
    "no column": (["{}"], "Option --column must name the column .* has the columns: area, price, same, kind, gaps"),
    "no such column": (
        ["{}", "--column", "prize"],
        "Column 'prize' must be in the table .did you mean price.., but there are only: area, ",
    ),
    "no such given": (["{}", "--column", "price", "--given", "areas"], "Column 'areas' must be in the table"),
    "words": (["{}", "--column", "kind"], "column 'kind' has words in 200 of 200, such as 'u' .rows 1, 2, 3, ...."),
    "gaps": (
        ["{}", "--column", "gaps"],
        "must have a value in every row, but column 'gaps' lacks 1 of 200 values .row 6.: leave such rows out",
    ),
    "constant": (["{}", "--column", "same"], "Column 'same' of .* must vary, but all its values are 7"),
    "constant given": (["{}", "--column", "price", "--given", "same"], "Column 'same' of .* must vary"),
    "twice": (["{}", "--column", "price", "--given", "price"], "must name different columns, but both are 'price'"),
    "no file": (["--column", "price"], "Options that choose what to read must come with a file"),
    "bounds no numbers": (["{}", "--column", "price", "--bounds", "0;1"], "Option --bounds must be two numbers"),
    "one bound": (
        ["{}", "--column", "price", "--bounds", "0"],
        "Option --bounds must be two numbers .* '0,100' or '0,'",
    ),
    "infinite bound": (["{}", "--column", "price", "--bounds", "0,inf"], "Option --bounds must be two numbers"),
    "falling bounds": (["{}", "--column", "price", "--bounds", "5,1"], "Option --bounds must rise"),
    "rows beyond": (["{}", "--column", "area", "--bounds", ",5"], "--bounds must hold all values .* up to 9.9"),
    "rows before": (["{}", "--column", "area", "--bounds", "5,"], "--bounds must hold all values .* down to 0.0"),
    "bounds and given": (
        ["{}", "--column", "price", "--given", "area", "--bounds", "0,"],
        "Option --bounds must be given without --given",
    ),
    "few rows": (["{few}", "--column", "a"], "must have at least 5 rows, but it has 2"),
    "bad picture": (["{}", "--column", "price", "--plot", "p.txt"], "Option --plot must name a file that ends in .png"),
    "bad output": (
        ["{}", "--column", "price", "--out", "p.txt"],
        "--out must name a file that ends in .nc, .csv, .json",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_said_in_one_sentence(run, data, tmp_path, name):
    words, sentence = BAD[name]
    few = tmp_path / "few.csv"
    few.write_text("a\n1\n2\n")
    code, out, err = run("density", *(word.format(data[0], few=few) for word in words))
    assert (code, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert re.search(sentence, err), err


def test_help_and_the_list_of_commands_are_quick_and_say_what_it_does(run):
    assert "density" in run("--help")[1]
    out = run("density", "--help")[1]
    assert "--column" in out
    assert "--given" in out


def test_a_bound_is_proposed_as_an_option_and_the_axis_ends_at_it(run, tmp_path):
    minutes = np.random.default_rng(1).exponential(3, 400)
    path = tmp_path / "wait.csv"
    path.write_text("minutes\n" + "\n".join(f"{x:.4f}" for x in minutes) + "\n")
    code, _, said = run("density", str(path), "--column", "minutes")
    assert code == 0
    assert "The values of minutes pile up at an end: if none can lie beyond, set `--bounds 0,`." in said
    bounded = FieldDensity(bounds=(0.0, None)).fit(minutes).describe(0.9).assign_attrs(column="minutes")
    (axes,) = quenched.plot(bounded).axes
    assert axes.get_xlim() == (0.0, float(bounded["value"].values[-1]))
