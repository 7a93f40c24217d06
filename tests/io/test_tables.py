"""Tables: right ones come in whole, wrong ones are refused in one sentence. Folders: nothing computed is lost."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quenched import io
from quenched.core.types import InputError
from quenched.io import sources


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


def test_words_and_truths_become_columns_of_0_and_1_in_order_of_appearance(table):
    path = table("Sex,a,ill,y\nM,1.5,True,1\nF,2,False,2\nI,3,True,3\nM,4,True,4\n")
    found = io.read_table(path, target="y", categories=True)
    assert found.names == ("Sex=M", "Sex=F", "Sex=I", "a", "ill=True", "ill=False")
    rows = [[1, 0, 0, 1.5, 1, 0], [0, 1, 0, 2, 0, 1], [0, 0, 1, 3, 1, 0], [1, 0, 0, 4, 1, 0]]
    assert (found.inputs.tolist(), found.targets.tolist(), found.notes) == (rows, [1, 2, 3, 4], ())


def test_fifty_words_are_categories_and_numbers_are_not_however_many_there_are(table):
    path = table("w,n,y\n" + "".join(f"w{i % 50},{i / 7},{i}\n" for i in range(60)))
    found = io.read_table(path, target="y", categories=True)
    assert found.inputs.shape == (60, 51)
    np.testing.assert_array_equal(found.inputs[:, :50].sum(axis=1), 1)


def test_what_says_nothing_is_left_out_with_a_note(table):
    path = table(",a,b,c,y\n0,7,u,1,1\n1,7,u,2,2\n2,7,u,4,3\n")
    found = io.read_table(path, target="y", categories=True)
    assert found.names == ("c",)
    assert [note.split(" is ")[0] for note in found.notes] == ["The first column", "Column 'a'", "Column 'b'"]
    assert "all its values are 7" in found.notes[1]
    assert io.read_table(path, target="y", columns=["a", "c"]).names == ("a", "c")


def test_the_columns_of_a_file(table):
    assert io.column_names(table("a,b c,y\n1,x,\n")) == ["a", "b c", "y"]


BAD = {
    "empty file": ("", {}, "is empty"),
    "no rows": ("a,b\n", {}, "is empty"),
    "no such target": ("a,b\n1,2\n", {"target": "c"}, "'c' must be in the table, but there are only: a, b"),
    "no such column": ("a,b\n1,2\n", {"columns": ["z"]}, "'z' must be in the table"),
    "not numbers": (
        "a,b\n1,x\n",
        {},
        "a finite number in every row, but column 'b' has words in 1 of 1, such as 'x' .row 1.",
    ),
    "target not numbers": ("a,b\n1,x\n", {"target": "b"}, "'b' of .* must be numbers"),
    "missing value": (
        "a,b\n1,\n2,3\n",
        {},
        "a value in every row, but column 'b' lacks 1 of 2 values .row 1.: .*--drop-missing",
    ),
    "missing class": ("a,b\n1,\n2,u\n", {"target": "b", "classes": True}, "'b' lacks 1 of 2 values"),
    "infinite": ("a,b\n1,inf\n", {}, "'b' has infinite or too large numbers in 1 of 1"),
    "semicolons": ("a;b\n1;2\n", {}, "separated by semicolons"),
    "semicolons and decimal commas": ("a;b\n1,5;2,5\n", {}, "separated by semicolons"),
    "tabs": ("a\tb\n1\t2\n", {}, "separated by tabs"),
    "ragged": ("a,b\n1,2\n1,2,3\n", {}, "equally many values"),
    "more values than names": ("a,b\n1,2,3\n", {}, "a name for every column"),
    "no names": ("1,2\n3,4\n", {}, "begin with the names"),
    "not text": (b"\xff\xfe\x00\x01,\n1,2", {}, "UTF-8"),
    "only the target": ("y\n1\n", {"target": "y"}, "besides the target"),
    "target among the columns": ("a,y\n1,2\n", {"target": "y", "columns": ["y"]}, "must not contain the target"),
    "semicolons and a comma in a name": ("a, mm;b;y\n1,2;3;4\n", {"target": "y"}, "separated by semicolons"),
    "spaces": ("a b y\n1 2 3\n", {"target": "y"}, "separated by spaces"),
    "few rows": ("a,y\n1,2\n3,4\n", {"target": "y", "least": 5}, "at least 5 rows, but it has 2"),
    "names": ("a,y\nu,1\nv,2\nw,3\n", {"target": "y", "categories": True}, "'a' .* 3 different words in 3 rows"),
    "too many words": (
        "a,y\n" + "".join(f"w{i % 51},1\n" for i in range(200)),
        {"target": "y", "categories": True},
        "'a' .* 51 different words in 200 rows",
    ),
    "a stray word": (
        "a,y\n1.5,1\n?,2\n1.5,3\n",
        {"target": "y", "categories": True},
        "'a' has words in 1 of 3, such as '.' .row 2.",
    ),
    "missing word": (
        "a,y\nu,1\nNone,2\n",
        {"target": "y", "categories": True},
        "'a' lacks 1 of 2 values .row 2.: NA, None",
    ),
    "missing truth": ("a,y\nTrue,1\n,2\n", {"target": "y", "categories": True}, "'a' lacks 1 of 2 values"),
    "nothing varies": ("a,y\n1,1\n1,2\n", {"target": "y", "categories": True}, "a column that varies"),
    "target a word": ("a,y\n1,low\n2,high\n", {"target": "y", "categories": True}, "'y' of .* must be numbers"),
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
    monkeypatch.setattr(sources, "_parse", lambda source, codec, **_: pytest.fail("it was read"))
    with pytest.raises(InputError, match=r"must fit in memory, but it has 4\.4e\+03 GB"):
        io.read_table(path)


def packed(path, content):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data.csv", content)
    else:
        path.write_bytes({".gz": gzip, ".bz2": bz2, ".xz": lzma}[path.suffix].compress(content))
    return path


@pytest.mark.parametrize("kind", ["gz", "zip", "bz2", "xz"])
def test_a_compressed_file_is_as_large_as_what_comes_out_of_it(tmp_path, monkeypatch, kind):
    path = packed(tmp_path / f"data.csv.{kind}", b"a,b\n" + b"1,2\n" * 1_000_000)
    assert path.stat().st_size < 50_000
    assert io.read_table(path).inputs.shape == (1_000_000, 2)
    monkeypatch.setattr(sources, "available_memory", lambda: 2e7)  # enough for half of it
    monkeypatch.setattr(sources, "_parse", lambda source, codec, **_: pytest.fail("it was read"))
    with pytest.raises(
        InputError, match=r"fit in memory, but it has at least 0\.00\d+ GB unpacked .* of which 0\.02 GB"
    ):
        io.read_table(path)


@pytest.mark.parametrize("kind", ["gz", "zip", "bz2", "xz"])
def test_a_damaged_compressed_file_is_refused_in_one_sentence(tmp_path, kind):
    path = packed(tmp_path / f"data.csv.{kind}", b"a,b\n" + bytes(range(48, 58)) * 5000)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for content in (path.read_bytes(), b"no such thing"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="cannot be unpacked"):
            io.read_table(path)


def test_available_memory_is_that_of_this_machine():
    assert 2**26 < sources.available_memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


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
