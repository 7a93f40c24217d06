"""Many runs of one function, over keys and parameters: the only way in which experiments are repeated.

An experiment is a pure JAX function of (key, parameters), or a NumPy function (`OnHost`). `ensemble` runs it `runs`
times at every point of a sweep and keeps each run. The work is cut into pieces, (point, consecutive runs), of one
fixed width, so that a sweep compiles once; run `r` of point `i` draws from `fold_in(fold_in(key, i), r)` and from
nothing else. Hence the answer is the same to the last bit whoever computes a piece, in whatever order: this process
(`Local`), other processes (`Processes`), other machines of the same kind (`Dask`), or an earlier call that left its
pieces in a folder. Runs that fail are kept, counted and marked.

Files: `program` compiles and runs a piece, here, `executors` has other places, `sweep` is the front door; the folder
of pieces is a `core.store.Store`. Not covered: functions with side effects, outputs whose shape depends on
numbers, and equality of the last bit across kinds of hardware and numbers of cores.
"""

from quenched.core.ensemble.executors import Dask, Processes
from quenched.core.ensemble.program import ClusterError, Executor, Local, OnHost
from quenched.core.ensemble.sweep import Ensemble, ensemble, place

__all__ = ["ClusterError", "Dask", "Ensemble", "Executor", "Local", "OnHost", "Processes", "ensemble", "place"]
