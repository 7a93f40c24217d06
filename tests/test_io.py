"""Tables: right ones come in whole, wrong ones are refused in one sentence. Folders: nothing computed is lost."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quenched import io
from quenched.core.results import OutputError
from quenched.core.types import InputError


@pytest.fixture
def table(tmp_path):
    def write(content):
        path = tmp_path / "data.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_a_table_comes_in_whole(table):
    found = io.read_table(table("a,b,y\n1,2.5,3\n4,-5e-3,6\n"), target="y")
    np.testing.assert_array_equal(found.inputs, [[1, 2.5], [4, -0.005]])
    np.testing.assert_array_equal(found.targets, [3, 6])
    assert (found.names, found.target) == (("a", "b"), "y")


def test_columns_are_chosen_in_the_order_asked_for(table):
    found = io.read_table(table("a,b,c\n1,2,3\n"), columns=["c", "a"])
    assert found.targets is None
    assert found.inputs.tolist() == [[3, 1]]


def test_a_text_column_is_no_matter_if_it_is_not_asked_for(table):
    path = table("sex,length,rings\nM,0.4,15\nF,0.5,7\n")
    assert io.read_table(path, target="rings", columns=["length"]).inputs.tolist() == [[0.4], [0.5]]
    assert io.read_table(path, target="sex", classes=True).targets.tolist() == ["M", "F"]
    assert io.read_table(path, target="rings", columns=["length"], classes=True).targets.dtype.kind == "i"


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2), min_size=1, max_size=5)
)
def test_numbers_survive_the_way_through_a_file(table, rows):
    path = table("a,b\n" + "".join(f"{x!r},{y!r}\n" for x, y in rows))
    np.testing.assert_allclose(io.read_table(path).inputs, rows, rtol=1e-15)


BAD = {
    "empty file": ("", {}, "is empty"),
    "no rows": ("a,b\n", {}, "is empty"),
    "no such target": ("a,b\n1,2\n", {"target": "c"}, "'c' must be in the table, but there are only: a, b"),
    "no such column": ("a,b\n1,2\n", {"columns": ["z"]}, "'z' must be in the table"),
    "not numbers": ("a,b\n1,x\n", {}, "'b' of .* must be numbers, but it contains 'x'"),
    "target not numbers": ("a,b\n1,x\n", {"target": "b"}, "'b' of .* must be numbers"),
    "missing value": ("a,b\n1,\n2,3\n", {}, "'b' of .* 1 of 2 are missing"),
    "missing class": ("a,b\n1,\n2,u\n", {"target": "b", "classes": True}, "1 of 2 are missing"),
    "infinite": ("a,b\n1,inf\n", {}, "'b' of .* must be finite"),
    "semicolons": ("a;b\n1;2\n", {}, "separated by semicolons"),
    "semicolons and decimal commas": ("a;b\n1,5;2,5\n", {}, "separated by semicolons"),
    "tabs": ("a\tb\n1\t2\n", {}, "separated by tabs"),
    "ragged": ("a,b\n1,2\n1,2,3\n", {}, "equally many values"),
    "more values than names": ("a,b\n1,2,3\n", {}, "a name for every column"),
    "no names": ("1,2\n3,4\n", {}, "begin with the names"),
    "not text": (b"\xff\xfe\x00\x01,\n1,2", {}, "UTF-8"),
    "only the target": ("y\n1\n", {"target": "y"}, "besides the target"),
    "target among the columns": ("a,y\n1,2\n", {"target": "y", "columns": ["y"]}, "must not contain the target"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_table_is_refused_in_one_sentence(table, case):
    content, options, words = BAD[case]
    with pytest.raises(InputError, match=words) as caught:
        io.read_table(table(content), **options)
    assert "\n" not in str(caught.value)


def test_no_such_file_and_a_folder(tmp_path):
    with pytest.raises(InputError, match="not there"):
        io.read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="a folder"):
        io.read_table(tmp_path)


def test_a_file_larger_than_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "huge.csv"
    path.write_text("a,b\n1,2\n")
    os.truncate(path, 2**42)  # a hole: 4 TB that take no place on the disk
    monkeypatch.setattr(io, "_read", lambda source: pytest.fail("it was read"))
    with pytest.raises(InputError, match=r"must fit in memory, but it has 4\.4e\+03 GB"):
        io.read_table(path)


def test_available_memory_is_that_of_this_machine():
    assert 2**26 < io.available_memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(("name", "shape"), [("iris", (150, 4)), ("digits", (1797, 64)), ("diabetes", (442, 10)),
                                             ("wine", (178, 13)), ("breast_cancer", (569, 30))])  # fmt: skip
def test_bundled_sets(name, shape):
    found = io.bundled(name)
    assert found.inputs.shape == shape
    assert found.targets.shape == shape[:1]
    assert len(found.names) == shape[1]


def test_another_name_lists_the_sets():
    with pytest.raises(InputError, match=r"iris, wine, but 'boston'"):
        io.bundled("boston")


def test_a_folder_is_made_and_tried(tmp_path):
    assert io.writable_folder(tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputError, match="must be writable"):
            io.writable_folder(bad)


def test_what_cannot_be_written_is_put_elsewhere_and_the_sentence_says_where(tmp_path):
    (tmp_path / "file").write_text("")
    places = []

    def write(folder):
        places.append(folder)
        (folder / "result").write_text("precious")

    with pytest.raises(OutputError, match="the result was put in") as caught:
        io.write_into(tmp_path / "file", write)
    assert str(places[-1]) in str(caught.value)
    assert (places[-1] / "result").read_text() == "precious"


def test_a_disk_that_fills_up_half_way_loses_nothing(tmp_path):
    def write(folder):
        if folder == tmp_path:
            raise OSError(28, "No space left on device")
        (folder / "result").write_text("precious")

    with pytest.raises(OutputError, match=r"No space left on device.*put in"):
        io.write_into(tmp_path, write)
