"""What tests read from a page of the explorer, and how they turn its knobs."""

from __future__ import annotations

import json

import numpy as np

EQUAL = 1e-9
"""How nearly the lines of Python give what the page shows."""
SETTLED = "document.querySelector('[data-status]').textContent === 'exact'"


def query(tab, **state):
    return tab + "?" + "&".join(f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in state.items())


def asked(page, view):
    """The newest answer to a question of the page, and the names that its lines of Python leave."""
    found = page(f"window.answers.findLast((one) => one.view === {view!r})")
    assert found["answer"].get("refused") is None
    names = {}
    exec(found["answer"]["script"], names)
    return found["answer"], names


def listen(page):
    """Keep what the server answers, so that it can be compared; the page does not know."""
    page("""(() => {
      window.answers = [];
      const before = window.fetch;
      window.fetch = async (...given) => {
        const reply = await before(...given);
        if (given[0] === "/ask") reply.clone().json().then((answer) =>
          window.answers.push({ view: JSON.parse(given[1].body).view, answer }));
        return reply;
      };
    })()""")


def same(found, expected):
    """Whether numbers of the page, null where there are none, are those of Python."""
    found = np.array([np.nan if v is None else v for v in np.ravel(np.array(found, dtype=object))], float)
    np.testing.assert_allclose(found, np.ravel(np.asarray(expected, float)), rtol=EQUAL, atol=EQUAL)


def values(page):
    """The table of values at the dot."""
    return page("Object.fromEntries([...document.querySelectorAll('[data-value]')].map((cell) => "
                "[cell.dataset.value, cell.title === '' ? null : Number(cell.title)]))")  # fmt: skip


def knob(page, name):
    return float(page(f"document.querySelector('input[type=number][data-knob={name}]').value"))


def turn(page, name, value):
    """Type a value into a knob."""
    page(f"(() => {{ const box = document.querySelector('input[type=number][data-knob={name}]'); box.value = {value}; "
         "box.dispatchEvent(new Event('change')); })()")  # fmt: skip
