"""What classifiers and boosters of XGBoost say of some samples."""

import json
import sys
from pathlib import Path

import numpy as np
import xgboost

N, TRAINED = 260, 200
rng = np.random.default_rng(4)
labels = rng.integers(0, 3, N)
samples = np.eye(3)[labels] @ rng.normal(size=(3, 6)) + 1.2 * rng.normal(size=(N, 6))
positive = (labels > 0).astype(int)
new = samples[TRAINED:]


def boost(objective: str, truth: np.ndarray, **more: object) -> xgboost.Booster:
    trained = xgboost.DMatrix(samples[:TRAINED], truth[:TRAINED])
    return xgboost.train({"objective": objective, "max_depth": 3, "nthread": 1, **more}, trained, 8)


model = xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1)
model.fit(samples[:TRAINED], labels[:TRAINED])
softprob = boost("multi:softprob", labels, num_class=3)
outputs = {
    "predict_proba": model.predict_proba(new),
    "softprob": softprob.predict(xgboost.DMatrix(new)),
    "margin": softprob.predict(xgboost.DMatrix(new), output_margin=True),
    "softmax": boost("multi:softmax", labels, num_class=3).predict(xgboost.DMatrix(new)),
    "logistic": boost("binary:logistic", positive).predict(xgboost.DMatrix(new)),
    "logitraw": boost("binary:logitraw", positive).predict(xgboost.DMatrix(new)),
    "labels": labels[TRAINED:],
    "positive": positive[TRAINED:],
}
text = json.dumps({name: array.tolist() for name, array in outputs.items()})
Path(sys.argv[1], "xgboost.json").write_text(text + "\n")
