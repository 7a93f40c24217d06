"""FieldDensity on rows that come in batches or as Dask collections: the numbers of all rows, in little memory."""

import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from quenched.core.types import InputError
from quenched.estimators import FieldDensity
from quenched.fields.model.grid import Axis, Grid
from quenched.fields.practice import chunks, counting

ROUNDED = 1e-12  # sums in another order
QUICK = {"order": 3, "strength": 1e-3}  # one strength, so that a fit takes no time
AT = np.linspace(-3.0, 3.5, 41)


def mixed(n, seed=0):
    draw = np.random.default_rng(seed)
    return np.where(draw.random(n) < 0.3, draw.normal(-1.0, 0.5, n), draw.normal(1.0, 1.0, n))


def added(model, rows, pieces, weights=None):
    parts = np.array_split(np.arange(len(rows)), pieces)
    for i, part in enumerate(parts):
        model.partial_fit(rows[part], sample_weight=None if weights is None else weights[part], update=i == pieces - 1)
    return model


@pytest.mark.parametrize("shape", [(30,), (9, 7), (5, 4, 6)])
def test_counts_block_by_block_are_those_of_the_grid(shape, monkeypatch):
    monkeypatch.setattr(counting, "BLOCK", 100)
    draw = np.random.default_rng(0)
    rows, weights = draw.normal(size=(450, len(shape))), draw.random(450)
    grid = Grid(over=[Axis(-1.5, 2.0 + i, points=n, tails=(0.1, 0.0)) for i, n in enumerate(shape)])
    for w in (None, weights):
        np.testing.assert_allclose(counting.count(grid, rows, w), grid.counts(rows, w), atol=ROUNDED)
    bent = Grid(over=[Axis(-3.0, 90.0, 40, tails=(0.1, 0.1), bend=(0.5, 0.3))])
    np.testing.assert_allclose(counting.count(bent, rows[:, :1]), bent.counts(rows[:, :1]), atol=ROUNDED)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_batches_between_bounds_give_the_numbers_of_all_rows(columns, monkeypatch):
    monkeypatch.setattr(counting, "MOST", 500)
    rows = np.stack([mixed(3000, i) for i in range(columns)], axis=1)
    weights = np.random.default_rng(1).integers(0, 3, 3000)
    points = None if columns == 1 else 24
    model = FieldDensity(bounds=[(-9.0, 9.0)] * columns, points=points, **QUICK)
    parts = added(FieldDensity(**model.get_params()), rows, 5, weights)
    model.fit(rows, sample_weight=weights)
    np.testing.assert_allclose(parts.density_, model.density_, rtol=1e-9, atol=ROUNDED)
    assert parts.log_evidence_ == pytest.approx(model.log_evidence_, rel=ROUNDED)


def test_rows_outside_the_first_batch_move_the_ends(monkeypatch):
    monkeypatch.setattr(counting, "MOST", 500)
    rows = np.sort(mixed(20_000))  # every batch lies beyond the one before
    half = FieldDensity().fit(rows)
    model = added(FieldDensity(), rows, 10)
    assert model._tally.lattice.size < 3 * counting.CELLS[1]
    np.testing.assert_allclose(model.grid_, half.grid_)
    off = np.abs(np.log(model.pdf(AT) / half.pdf(AT)))
    assert np.max(off / np.log(half.credible_band(AT)[1] / half.pdf(AT))) < 0.01  # of the half width of the band
    lattice = model._tally.lattice.axes[0]
    exact = counting.count(Grid(over=[lattice]), rows[:, None])
    mean, spread = (np.array([c @ lattice.coordinates**k for c in (model._tally.counts, exact)]) for k in (1, 2))
    np.testing.assert_allclose(mean[0], mean[1], atol=1e-8)  # every row keeps its place on average
    np.testing.assert_allclose(spread[0], spread[1], atol=1e-8)


@pytest.mark.filterwarnings("ignore:The values of column 0 look rounded")
def test_few_different_values_are_kept_and_seen_to_be_rounded():
    rows = np.round(mixed(4000), 1)
    one, other = FieldDensity(order=3, strength=1e-3).fit(rows), added(FieldDensity(order=3, strength=1e-3), rows, 4)
    assert one.rounding_ == pytest.approx([0.1])
    assert other.rounding_ == pytest.approx([0.1])
    np.testing.assert_allclose(other.density_, one.density_, atol=1e-6)


def test_batches_go_on_from_a_fit_and_fit_begins_anew():
    rows = mixed(900)
    model = FieldDensity(bounds=(-9, 9), **QUICK).fit(rows[:600]).partial_fit(rows[600:])
    whole = FieldDensity(bounds=(-9, 9), **QUICK).fit(rows)
    np.testing.assert_allclose(model.density_, whole.density_, rtol=1e-9)
    assert model.describe().attrs["rows"] == 900
    again = FieldDensity(bounds=(-9, 9), **QUICK).fit(rows[:600])
    np.testing.assert_array_equal(model.fit(rows[:600]).density_, again.density_)


def test_bad_batches_are_refused_and_leave_no_trace():
    model = FieldDensity(bounds=(-9, 9), **QUICK).partial_fit(mixed(300))
    before = model.density_
    for bad, message in (([[99.0]], "inside `bounds`, but column 0 holds 99"), ([[np.nan]], "NaN"),
                         ([[0.0, 1.0]], "features")):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            model.partial_fit(bad)
    assert model.partial_fit([[0.5]], sample_weight=[1e-12])._seen.size == 301
    np.testing.assert_allclose(model.density_, before, rtol=1e-6)
    with pytest.raises(InputError, match="one, two or three columns, but it has 4"):
        FieldDensity().partial_fit(np.ones((5, 4)))
    with pytest.raises(InputError, match=r"at least two different values .* all n_samples=3 values of column 0 are 1"):
        FieldDensity().partial_fit([1.0, 1.0, 1.0])


@pytest.fixture
def dask():
    pytest.importorskip("dask.dataframe")
    import dask.array
    import dask.dataframe

    with dask.config.set(scheduler="synchronous"):
        yield dask


def test_a_dask_collection_gives_the_numbers_of_its_rows(dask, monkeypatch):
    monkeypatch.setattr(counting, "MOST", 100)
    monkeypatch.setattr(chunks, "MOST", 100)
    rows, weights = mixed(3000), np.random.default_rng(1).integers(0, 3, 3000).astype(float)
    for w in (None, weights):
        one = FieldDensity(**QUICK).fit(rows, sample_weight=w)
        chunked = None if w is None else dask.array.from_array(w, chunks=700)
        frame = dask.dataframe.from_pandas(pd.DataFrame({"price": rows, "w": weights}), npartitions=3)
        for X, share in (
            (dask.array.from_array(rows, chunks=700), chunked),
            (dask.array.from_array(rows[:, None], chunks=(700, 1)), w),
            (frame[["price"]], None if w is None else frame["w"]),
        ):
            other = FieldDensity(**QUICK).fit(X, sample_weight=share)
            assert not other._seen.exact
            np.testing.assert_allclose(other.density_, one.density_, rtol=1e-9)
            np.testing.assert_allclose(other.credible_band(), one.credible_band(), rtol=1e-8)
    assert other.feature_names_in_.tolist() == ["price"]
    plane = np.stack([rows[:1500], rows[1500:]], axis=1)
    both = plane, dask.array.from_array(plane, chunks=(400, 1))
    one, other = (FieldDensity(points=24, **QUICK).fit(X) for X in both)
    np.testing.assert_allclose(other.density_, one.density_, rtol=1e-8, atol=ROUNDED)


@pytest.mark.filterwarnings("ignore:The values of column 0 look rounded")
def test_few_values_and_edges_are_seen_in_a_dask_collection(dask):
    rows = np.round(mixed(4000), 1)
    model = FieldDensity(**QUICK).fit(dask.array.from_array(rows, chunks=900))
    assert model.rounding_ == pytest.approx([0.1])
    edge = np.random.default_rng(0).random(30_000)
    with pytest.warns(UserWarning, match="pile up"):
        model = FieldDensity(**QUICK).fit(dask.array.from_array(edge, chunks=10_000))
    assert model.suggested_bounds_ == (0.0, 1.0)


def test_the_memory_is_that_of_a_chunk(dask):
    chunk, many = 100_000, 40

    def draw(block_info=None):
        return mixed(chunk, block_info[None]["chunk-location"][0])

    rows = dask.array.map_blocks(draw, chunks=((chunk,) * many,), dtype=float, meta=np.zeros(0))
    FieldDensity(**QUICK).fit(rows[: 2 * chunk])  # what is kept from one fit to the next
    tracemalloc.start()
    model = FieldDensity(**QUICK).fit(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model._seen.size == many * chunk
    assert peak < 8 * 8 * chunk  # three chunks to draw one, a chunk and its weights, counts; all rows would be 40
    batches = FieldDensity(**QUICK)
    tracemalloc.start()
    for i in range(5):
        batches.partial_fit(mixed(chunk, i), update=i == 4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 8 * chunk


def test_what_dask_cannot_give_is_refused(dask):
    rows = dask.array.from_array(mixed(300), chunks=100)
    for X, weights, message in (
        (rows, np.ones(7), "one number for each of the 300 rows"),
        (rows, dask.array.ones(300, chunks=150), "in the chunks of `X`, 3, but it has 2"),
        (rows, -dask.array.ones(300, chunks=100), "`sample_weight` must be finite and not negative"),
        (dask.array.full(300, np.nan, chunks=100), None, "`X` must be finite"),
        (dask.array.zeros((30, 4), chunks=10), None, "one, two or three columns, but it has 4"),
        (dask.array.zeros(30, chunks=10), None, "at least two different values .* all n_samples=30 values"),
        (rows, dask.array.zeros(300, chunks=100), "at least one row with weight"),
    ):
        with pytest.raises(InputError, match=message):
            FieldDensity(**QUICK).fit(X, sample_weight=weights)
    with pytest.raises(InputError, match="give it to `fit`"):
        FieldDensity().partial_fit(rows)


def test_dask_is_not_imported_for_arrays(monkeypatch):
    monkeypatch.delitem(sys.modules, "dask", raising=False)
    assert not chunks.is_chunked(mixed(3))
    assert "dask" not in sys.modules
