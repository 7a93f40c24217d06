r"""Mean-field magnets whose states, spinodals and transitions are known in closed form.

Curie-Weiss: $f = m^2/2 - T \ln 2\cosh((m + h)/T)$ is stationary at $m = \tanh((m + h)/T)$, so on the curve of states
$h = T \operatorname{artanh} m - m$. It folds where $dh/dm = T/(1 - m^2) - 1 = 0$, at $m = \pm\sqrt{1 - T}$. By implicit
differentiation $dm/dh = (1 - m^2)/(T - 1 + m^2)$ and $dm/dT = -\operatorname{artanh}(m)\,dm/dh$.
At $h = 0$ the states $\pm m$ have equal free energy, and they split off $m = 0$ at $T = 1$.

Landau with a cubic term: $f = a m^2/2 - m^3/3 + b m^4/4$ is stationary at $m = 0$ and $m = (1 \pm \sqrt{1 - 4ab})/2b$.
The fold is at $a = 1/4b$, $m = 1/2b$. Equal free energies, $a/2 - m/3 + b m^2/4 = 0$, minus half of $a - m + b m^2 = 0$
give $m = 2/3b$ and $a = 2/9b$: the first-order transition. The two branches cross at $a = 0$.
"""

import jax.numpy as jnp
import numpy as np

from quenched.core import saddle


def curie_weiss(m, h, T):
    u = (m + h) / T
    return jnp.sum(m**2 / 2 - T * jnp.logaddexp(u, -u))


def landau(m, a, b):
    return jnp.sum(a * m**2 / 2 - m**3 / 3 + b * m**4 / 4)


IN_FIELD = saddle.Landscape(curie_weiss)
"""The magnet with the field as control and the temperature as argument."""
IN_TEMPERATURE = saddle.Landscape(lambda m, T, h: curie_weiss(m, h, T))
"""The magnet with the temperature as control and the field as argument."""
LANDAU = saddle.Landscape(landau)


def field(m, T):
    return T * np.arctanh(m) - m


def spinodal(T):
    """Where the upper state ends: field and magnetisation."""
    m = np.sqrt(1 - T)
    return field(m, T), m


def susceptibility(m, T):
    return (1 - m**2) / (T - 1 + m**2)
