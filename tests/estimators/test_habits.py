"""What every estimator does as scikit-learn's do: it survives pickle and joblib, and keeps the names of columns."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from quenched import estimators

RNG = np.random.default_rng(0)
LABELS = np.repeat(["good", "bad"], 30)
X = RNG.normal(size=(60, 2)) + 2.0 * (LABELS == "good")[:, None]
Y = X[:, 0] + 0.1 * RNG.normal(size=60)

# estimator, columns, targets, and what of a fitted one is compared
CASES = {
    "AnnealedMixture": ({"n_components": 2, "random_state": 0}, 2, None, ("predict_proba", "score_samples")),
    "ClusterFinder": ({"components": 3, "random_state": 0}, 2, None, ("predict", "predict_proba")),
    "ClusterRegressor": ({"points": 32, "random_state": 0, "n_init": 2}, 1, Y, ("predict", "predict_functions")),
    "FieldClassifier": ({}, 2, LABELS, ("predict", "predict_proba")),
    "FieldConditional": ({"points": (16, 16), "order": 1, "strength": (0.1, 0.1)}, 1, Y, ("predict",)),
    "FieldDensity": ({"points": 32}, 1, None, ("score_samples",)),
    "FieldRegressor": ({"points": 32}, 1, Y, ("predict",)),
    "HardSelectionClassifier": ({"outlier_fraction": 0.05}, 2, LABELS, ("predict", "predict_proba")),
    "InversePotential": ({"points": 40, "strength": 1e-3}, 1, None, ("score_samples",)),
    "LVQClassifier": ({"fallback": False, "random_state": 0}, 2, LABELS, ("predict", "predict_proba")),
    "SelectionClassifier": ({"random_state": 0}, 2, LABELS, ("predict", "predict_proba")),
    "SelectionRegressor": ({"random_state": 0}, 2, Y, ("predict",)),
    "SoftSelectionClassifier": ({}, 2, LABELS, ("predict", "predict_proba")),
    "VQClusterer": ({"passes": 2, "random_state": 0}, 2, None, ("predict", "transform")),
}


@pytest.fixture(scope="module", params=CASES)
def fitted(request):
    """An estimator fitted to a table with named columns, the table, and what to compare."""
    given, columns, target, answers = CASES[request.param]
    table = pd.DataFrame(X[:, :columns], columns=["length", "width"][:columns])
    model = getattr(estimators, request.param)(**given)
    return (model.fit(table) if target is None else model.fit(table, target)), table, answers


def test_the_cases_are_all_estimators():
    assert set(CASES) == set(estimators.__all__)


@pytest.mark.parametrize("way", ["pickle", "joblib"])
def test_a_fitted_estimator_survives(fitted, way, tmp_path):
    model, table, answers = fitted
    if way == "pickle":
        again = pickle.loads(pickle.dumps(model))
    else:
        joblib.dump(model, tmp_path / "model.joblib")
        again = joblib.load(tmp_path / "model.joblib")
    assert again.get_params().keys() == model.get_params().keys()
    assert again.feature_names_in_.tolist() == list(table.columns)
    for answer in answers:
        np.testing.assert_array_equal(getattr(again, answer)(table), getattr(model, answer)(table))


def test_the_names_of_columns_are_kept_and_checked(fitted):
    model, table, answers = fitted
    assert model.feature_names_in_.tolist() == list(table.columns)
    assert model.n_features_in_ == table.shape[1]
    with pytest.raises(ValueError, match="feature names"):
        getattr(model, answers[0])(table.rename(columns={"length": "depth"}))


def test_what_transforms_names_its_columns_and_gives_data_frames_if_asked(fitted):
    model, table, _ = fitted
    if not hasattr(model, "transform"):
        assert not hasattr(model, "get_feature_names_out")
        return
    names = model.get_feature_names_out()
    assert model.transform(table).shape == (len(table), len(names))
    frame = pickle.loads(pickle.dumps(model)).set_output(transform="pandas").transform(table)
    assert list(frame.columns) == list(names)
    assert frame.index.equals(table.index)
    pipeline = make_pipeline(StandardScaler(), type(model)(**model.get_params())).set_output(transform="pandas")
    assert list(pipeline.fit_transform(table).columns) == list(names)
