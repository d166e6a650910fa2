"""The README's lines for networks run as they are written, and the ONNX file takes any batch."""

import re
from pathlib import Path

import numpy as np
import pytest

import howsure as hs

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
onnxruntime = pytest.importorskip("onnxruntime")
README = Path(__file__).parents[2] / "README.md"


def test_the_lines_run_and_the_batch_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    x, y = torch.randn(40, 4), torch.randint(0, 3, (40,))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=10)
    (block,) = re.findall(
        r"```python\n(preds = hs\.torch.*?)```", README.read_text(encoding="utf-8"), re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    names = {
        "hs": hs,
        "torch": torch,
        "model": model,
        "loader": loader,
        "val_loader": loader,
        "example": x[:2],
    }
    exec(block, names)
    session = onnxruntime.InferenceSession("calibrated.onnx")
    for n in (1, 2, 17):
        found = session.run(None, {session.get_inputs()[0].name: x[:n].numpy()})[0]
        np.testing.assert_allclose(found, names["calibrated"](x[:n]).detach().numpy(), atol=1e-6)
