"""scikit-learn's own tests of CalibratedClassifierCV, run against CalibratedClassifier where they apply.

Their file is read from the installed scikit-learn, our class takes the place of theirs, and what does not apply is
listed with the reason.
"""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("sklearn")

NOT_APPLICABLE = {
    "test_calibration_default_estimator": "our default is logistic regression, theirs a linear SVM",
    "test_calibration_zero_probability": "tests a private class of theirs",
    "test_calibration_ensemble_false": "compares bit by bit with their calibrators: isotonic inside cross_val_predict",
    "test_sigmoid_calibration": "tests a private class of theirs",
    "test_temperature_scaling": "reads the private list `calibrators` of their pairs",
    "test_temperature_scaling_input_validation": "tests a private class of theirs",
    "test_calibration_less_classes": "Platt works on logits here: a tree's probability of exactly 0 stays 0",
    "test_calibrated_classifier_cv_double_sample_weights_equivalence": "a weight is importance here, not repetition",
    "test_error_less_class_samples_than_folds": "fewer folds with a warning, not an error",
    "test_sigmoid_calibration_max_abs_prediction_threshold": "tests a private function of theirs",
    "test_calibrated_classifier_cv_works_with_large_confidence_scores": "needs a fixture of their own test suite",
    "calibration_curve": "tests their calibration_curve",
    "display": "tests their CalibrationDisplay",
    "array_api": "array API dispatch is theirs alone",
}
OURS = '''
from howsure.sklearn import CalibratedClassifier as _Ours

class CalibratedClassifierCV(_Ours):
    """Their signature, our class."""

    def __init__(self, estimator=None, *, method="sigmoid", cv=None, n_jobs=None, ensemble="auto"):
        super().__init__(estimator, "platt" if method == "sigmoid" else method, 5 if cv is None else cv, n_jobs=n_jobs)
        self.method = method
        self.ensemble = ensemble

    def fit(self, X, y, sample_weight=None, **fit_params):
        asked, self.ensemble = self.ensemble, self.ensemble is True
        try:
            return super().fit(X, y, sample_weight, **fit_params)
        finally:
            self.ensemble = asked

'''


@pytest.mark.slow
def test_their_tests_pass(tmp_path: Path) -> None:
    found = find_spec("sklearn.tests.test_calibration")
    assert found is not None
    assert found.origin is not None
    text = Path(found.origin).read_text()
    marker = "N_SAMPLES = 200"
    assert marker in text, "scikit-learn's test file has changed; adapt the place where our class is put in"
    (tmp_path / "test_theirs.py").write_text(text.replace(marker, OURS + marker, 1))
    chosen = " and ".join(f"not {name}" for name in NOT_APPLICABLE)
    call = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "-k", chosen]
    done = subprocess.run([*call, str(tmp_path / "test_theirs.py")], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 60  # 68 with scikit-learn 1.9.1; the others are those above
