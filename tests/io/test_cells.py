"""Cells of every kind: read, or refused as what they are, all columns in one sentence; files that are no tables."""

from __future__ import annotations

import codecs
import io as streams
import tarfile
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quenched import io
from quenched.core import columns
from quenched.core.types import InputError, printable
from tests.properties import common as properties


@pytest.fixture
def table(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def refused(*arguments, **options):
    """The sentence with which a table is refused."""
    with pytest.raises(InputError) as caught:
        io.read_table(*arguments, **options)
    assert str(caught.value).isprintable()
    return properties.said(caught.value)


# Names


@pytest.mark.parametrize("target", [None, "y"])
def test_two_columns_of_one_name_are_refused(table, target):
    path = table("a,y,b,y\n1,2,3,4\n5,6,7,8\n")
    assert "but columns 2 and 4 are both named 'y'" in refused(path, target=target)
    assert io.read_table(path, target="b", columns=["a"]).inputs.tolist() == [[1], [5]]


def test_a_column_is_asked_for_once(table):
    assert "names 'a' again" in refused(table("a,b\n1,2\n"), columns=["a", "b", "a"])


def test_words_of_one_column_do_not_overwrite_another(table):
    sentence = refused(table("c,c=x,y\nx,5,1\nz,6,2\nx,7,3\n"), target="y", categories=True)
    assert "Columns 'c' and 'c=x'" in sentence
    assert "both give 'c=x'" in sentence
    assert "both give 'a=b=c'" in refused(table("a,a=b,y\nb=c,c,1\nb=c,d,2\nu,c,3\n"), target="y", categories=True)


def test_no_control_character_leaves_the_reader(table):
    path = table('"a\x1b[31m","b\nc",y\n1,u,3\n2,v\x07,4\n3,u,5\n')
    found = io.read_table(path, target="y", categories=True)
    assert found.names == (r"a\x1b[31m", r"b\nc=u", r"b\nc=v\x07")
    assert io.read_table(path, columns=["a\x1b[31m"]).names == (r"a\x1b[31m",)
    assert io.column_names(path) == [r"a\x1b[31m", r"b\nc", "y"]
    assert r"there are only: a\x1b[31m, b\nc, y" in refused(path, target="z\x1b")


@properties.property_settings(50)
@given(st.text(st.sampled_from("a é🙂\x00\x07\x1b\x9b\n\r\t\xa0\u202e\u2028\u200d\ud800"), max_size=8))
def test_what_is_shown_is_printable_and_what_was_so_stays(text):
    assert printable(text).isprintable()
    assert printable(text) == text or not text.isprintable()
    assert str(InputError(f"A column must be there, but {text} is not.")).isprintable()


# Cells


def test_every_fault_of_every_column_is_named_at_once_with_its_rows(table):
    lines = [f"{'' if i in (3, 6, 8, 9) else i},{'?' if i == 2 else i},{i},{'' if i == 5 else i}" for i in range(12)]
    path = table("\n".join(["a,b,c,y", *lines]) + "\n")
    for options in ({}, {"target": "y"}, {"target": "y", "categories": True}):
        sentence = refused(path, **options)
        assert "column 'a' lacks 4 of 12 values (rows 4, 7, 9, ...)" in sentence
        assert "column 'b' has words in 1 of 12, such as '?' (row 3)" in sentence
        assert "column 'y' lacks 1 of 12 values (row 6)" in sentence
        assert "--drop-missing" in sentence
        assert "'c'" not in sentence


def test_many_bad_columns_are_counted(table):
    path = table(",".join(f"c{i}" for i in range(9)) + "\n" + ",".join("x" * 9) + "\n")
    assert "5 more columns" in refused(path)
    path = table("a,b,y\n" + "".join(f"u{i},v{i},{i}\n" for i in range(60)))
    sentence = refused(path, target="y", categories=True)
    assert "'a' has 60 different words in 60 rows; 'b' has 60 different words" in sentence


def test_rows_with_gaps_are_left_out_where_that_is_asked_for(table):
    path = table("a,b,y\n1,u,1\n,v,2\n3,u,NA\n4,v,4\n5,,5\n6,u,6\n")
    found = io.read_table(path, target="y", categories=True, drop_missing=True)
    assert found.inputs.tolist() == [[1, 1, 0], [4, 0, 1], [6, 1, 0]]
    assert found.targets.tolist() == [1, 4, 6]
    assert [found.place(i) for i in range(3)] == [1, 4, 6]
    assert found.notes == ("3 of 6 rows are left out, because values are missing in: a (1), b (1), y (1).",)
    assert io.read_table(path, columns=["a"], drop_missing=True).inputs.ravel().tolist() == [1, 3, 4, 5, 6]
    assert "at least 4 rows without gaps, but it has 3" in refused(path, drop_missing=True, categories=True, least=4)
    assert "rows without gaps" in refused(table("a,b\n1,\n,2\n"), drop_missing=True)


def test_copies_are_left_out_where_that_is_asked_for(table):
    path = table("a,b,y\n1,2,3\n1,2,4\n1,2,3\n5,6,7\n1,2,3\n")
    found = io.read_table(path, target="y", drop_copies=True)
    assert found.inputs.tolist() == [[1, 2], [1, 2], [5, 6]]
    assert [found.place(i) for i in range(3)] == [1, 2, 4]
    assert found.notes == ("2 of 5 rows are left out, because they are copies of earlier ones.",)
    assert len(io.read_table(path, columns=["a", "b"], drop_copies=True).inputs) == 2
    whole = io.read_table(path, target="y")
    assert (len(whole.inputs), whole.place(2), whole.notes) == (5, 3, ())


READ = {
    "percents": (["12%", "3.5 %", "-1%"], [0.12, 0.035, -0.01], "12% is 0.12"),
    "thousands and points": (["1,234.5", "12", "7"], [1234.5, 12, 7], "1,234.5 is 1234.5"),
    "millions": (["1,234,567", "1,234", "5"], [1234567, 1234, 5], "1,234,567 is 1234567"),
    "a point elsewhere": (["1,234", "999.5", "5"], [1234, 999.5, 5], "1,234 is 1234"),
}


@pytest.mark.parametrize("case", READ)
def test_what_can_be_nothing_else_is_read_with_a_note(table, case):
    texts, values, note = READ[case]
    found = io.read_table(table("a,y\n" + "".join(f'"{t}",{i}\n' for i, t in enumerate(texts))), target="y")
    np.testing.assert_allclose(found.inputs[:, 0], values)
    assert found.notes == (f"Column 'a' is read as numbers: {note}.",)


NOT_READ = {
    "decimal commas": (
        ["1,5", "2", "0,25"],
        "decimal commas in 2 of 3, such as '1,5' (rows 1, 3): write decimals with",
    ),
    "both": (["1.234,5", "2", "3"], "decimal commas in 1 of 3"),
    "zero and three decimals": (["0,125", "1,234", "3"], "decimal commas in 2 of 3"),
    "thousands or decimals": (["1,234", "2,345", "3"], "commas that may stand for thousands or for decimals in 2 of 3"),
    "dates": (["2024-01-31", "2024-02-01 12:30", "2024/3/1"], "dates in 3 of 3, such as '2024-01-31'"),
    "other dates": (["31.1.2024", "1 Feb 2024", "Mar 3, 2024"], "dates in 3 of 3"),
    "some percents": (["12%", "3", "4"], "percent signs beside plain numbers in 1 of 3"),
    "many digits": (["9" * 400, "1", "2"], "infinite or too large numbers in 1 of 3, such as '99999"),
    "words": (["low", "2", "3"], "words in 1 of 3, such as 'low' (row 1)"),
}


@pytest.mark.parametrize("categories", [False, True])
@pytest.mark.parametrize("case", NOT_READ)
def test_what_is_not_read_is_refused_as_what_it_is(table, case, categories):
    texts, sentence = NOT_READ[case]
    path = table("a,y\n" + "".join(f'"{t}",{i}\n' for i, t in enumerate(texts)))
    assert f"column 'a' has {sentence}" in refused(path, target="y", categories=categories)


def test_decimal_commas_between_semicolons_are_named(table):
    for content in ("a;b\r1,5;2,5\r", "a;b\n1,5;2,5\n", "a;b\n1;2\n3;4,25\n5;6\n", "a\tb\n1,5\t2\n"):
        sentence = refused(table(content))
        assert "seems to be separated by" in sentence
        assert "and to write decimals with commas" in sentence
    assert "decimals" not in refused(table("a;b\n1;2\n"))


def test_a_class_to_be_predicted_says_what_learns_classes(table):
    for words in (["low", "high", "low"], ["True", "False", "True"]):
        path = table("a,y\n" + "".join(f"{i},{word}\n" for i, word in enumerate(words)))
        sentence = refused(path, target="y", categories=True)
        assert "'y' of" in sentence
        assert "these are classes: take --model forest" in sentence
        assert len(set(io.read_table(path, target="y", classes=True).targets.tolist())) == 2


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.just(10**400), st.just(10**5000), st.floats(), st.complex_numbers(),
    st.text(max_size=6), st.binary(max_size=4), st.dates(), st.just(pd.NA), st.just(pd.NaT), st.just(np.float32(2.5)),
    st.from_regex(r"[+-]?[0-9]{1,4}[,.]?[0-9]{0,4}%?", fullmatch=True),
)  # fmt: skip


@properties.property_settings(100)
@given(st.lists(CELLS, min_size=1, max_size=4))
def test_any_cell_is_a_number_missing_or_something_else(cells):
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    found = columns.read_column("x", array)
    assert np.array_equal(np.isfinite(found.values), ~found.missing & ~found.wrong)
    assert not np.any(found.missing & found.wrong)
    if found.missing.any() or found.wrong.any():
        with pytest.raises(InputError) as caught:
            columns.check("The table", [found])
        properties.said(caught.value)


# Files


def test_text_in_another_encoding(table):
    path = table("größe,y\n1,2\n".encode("latin-1"))
    assert "must be text in UTF-8, but it is not: give its encoding" in refused(path)
    assert io.read_table(path, encoding="latin-1").names == ("größe", "y")
    wide = table(codecs.BOM_UTF16_LE + "größe,y\n1,2\n".encode("utf-16-le"))
    assert io.read_table(wide, encoding="utf-16").names == ("größe", "y")
    assert io.column_names(wide, encoding="utf-16") == ["größe", "y"]
    marked = table(codecs.BOM_UTF8 + "größe,y\n1,2\n".encode())
    for encoding in (None, "utf-8", "UTF8"):
        assert io.read_table(marked, encoding=encoding).names == ("größe", "y")
    for wrong in ("klingon", "base64", ""):
        assert "`encoding` must be an encoding of text" in refused(path, encoding=wrong)


def archive(path, content=b"a,b\n1,2\n", **changes):
    """A zip file whose entries say something else."""
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("data.csv", content)
    raw = bytearray(path.read_bytes())
    for start, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = raw.index(start) + offset
        raw[place] |= changes.get("flags", 0)
        raw[place + 2] = changes.get("method", raw[place + 2])
    path.write_bytes(bytes(raw))
    return path


def test_archives_that_cannot_be_opened(table, tmp_path):
    assert io.read_table(archive(tmp_path / "good.zip")).inputs.tolist() == [[1, 2]]
    assert "encrypted" in refused(archive(tmp_path / "secret.zip", flags=1))
    assert "cannot be unpacked" in refused(archive(tmp_path / "odd.zip", method=97))
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as packed:
        packed.writestr("a.csv", "a\n1\n")
        packed.writestr("b.csv", "b\n1\n")
    assert "must hold one file, but it holds 2" in refused(tmp_path / "two.zip")
    stream = streams.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as packed:
        packed.addfile(tarfile.TarInfo("data.csv"), streams.BytesIO())
    for name in ("data.tar", "data.tar.gz", "data.tgz", "data.csv.zst"):
        assert "an archive of another kind" in refused(table(stream.getvalue(), name))
    assert "tar archive" in refused(table(stream.getvalue(), "data.csv"))
    assert "spreadsheet or a packed file" in refused(table((tmp_path / "good.zip").read_bytes(), "data.csv"))


def test_a_spreadsheet_is_read_where_pandas_can(tmp_path):
    sheet = pd.DataFrame([["a", "day", "y"], [1, pd.Timestamp(2024, 1, 31), "12%"], [2.5, None, "3%"]])
    path = tmp_path / "data.xlsx"
    with pd.ExcelWriter(path) as book:
        for name in ("first", "second"):
            sheet.to_excel(book, sheet_name=name, header=False, index=False)
    found = io.read_table(path, target="y", columns=["a"])
    assert (found.inputs.tolist(), found.targets.tolist()) == ([[1], [2.5]], [0.12, 0.03])
    assert found.notes[0] == "Only the first of 2 sheets is read, 'first'."
    assert io.column_names(path) == ["a", "day", "y"]
    assert "column 'day' lacks 1 of 2 values (row 2) and has dates in 1 of 2" in refused(path)


@pytest.mark.parametrize(("ending", "reader"), [("xlsx", "ExcelFile"), ("parquet", "read_parquet")])
def test_other_formats_that_cannot_be_read_are_refused(table, monkeypatch, ending, reader):
    def lack(*_, **__):
        raise ImportError("Missing optional dependency 'thing'. Use pip or conda to install thing.")

    path = table(b"no such thing", f"data.{ending}")
    sentence = refused(path)
    assert "damaged" in sentence or "is installed, but it is a" in sentence
    monkeypatch.setattr(pd, reader, lack)
    assert "unless the package thing is installed" in refused(path)
    assert "pip install 'quenched[tables]'" in refused(path)


def test_a_frame_from_parquet(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": pd.array([1, None], dtype="Int64"), "y": [True, False]})
    path = tmp_path / "data.parquet"
    frame.to_parquet(path)
    assert io.read_table(path, target="a", columns=["y"]).inputs.tolist() == [[1], [0]]
    assert "column 'b' lacks 1 of 2 values" in refused(path)
