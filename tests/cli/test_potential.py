"""`quenched potential`: what is read, said, drawn and saved, and what is refused in one sentence."""

import numpy as np
import pytest
from matplotlib.image import imread

import quenched

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def data(tmp_path):
    """Positions of an oscillator, and a column of words."""
    y = np.random.default_rng(0).normal(scale=np.sqrt(0.5), size=150)
    path = tmp_path / "positions.csv"
    path.write_text("y,word,same\n" + "\n".join(f"{value:.6f},a,1" for value in y) + "\n")
    return path


def test_positions_are_told_drawn_and_saved(run, data, tmp_path):
    code, out, err = run("potential", data, "--column", "y", "--plot", tmp_path / "p.png", "--out", tmp_path / "p.nc")
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert f"{data.name}: 150 rows of y, measured in the ground state" in words
    result = quenched.load(tmp_path / "p.nc")
    gap = float(result.energy[1] - result.energy[0])
    assert gap == pytest.approx(1.0, abs=0.3)
    assert f"the first excited level lies {quenched.cli.digits.number(gap)} above the lowest" in words
    assert "The potential has a well at" in words
    assert (imread(tmp_path / "p.png")[..., :3] < 0.9).any()


def test_temperature_state_and_mass_are_options(run, data, tmp_path):
    code, _, err = run(
        "potential", data, "--column", "y", "--temperature", "0.4", "--mass", "2", "--out", tmp_path / "w.nc"
    )
    assert (code, err) == (0, "")
    warm = quenched.load(tmp_path / "w.nc")
    assert "temperature 0.4" in warm.attrs["measured"]
    assert warm.attrs["mass"] == 2
    assert run("potential", data, "--column", "y", "--state", "1", "--symmetric")[0] == 0


@pytest.mark.parametrize(("words", "said"), [
    (("--column", "nothing"), "nothing"),
    (("--column", "word"), "word"),
    (("--column", "same"), "must vary"),
    ((), "Option --column must name the column with the positions"),
    (("--column", "y", "--temperature", "-1"), "Option --temperature must be positive"),
    (("--column", "y", "--mass", "0"), "Option --mass must be positive"),
    (("--column", "y", "--state", "hot"), "Option --state must be 'ground' or the number of a level"),
    (("--column", "y", "--bounds", "0,0.1"), "must lie inside `bounds`"),
    (("--column", "y", "--periodic"), "must be two numbers with `periodic`"),
])  # fmt: skip
def test_bad_input_is_one_sentence(run, data, words, said):
    code, out, err = run("potential", data, *words)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())
    assert "Traceback" not in err
