"""The page of a report as a widget whose threshold comes back to Python (extra `notebook`)."""

from __future__ import annotations

from typing import Any, cast

from howsure._core.checks import InputError, at_least, need
from howsure.policies import Policy
from howsure.policies.policy import Guarantee
from howsure.report.report import Report

__all__ = ["deciding"]

# The page says what was chosen; only this frame is listened to, and only numbers are taken.
SCRIPT = """
export default {
  render({ model, el }) {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts allow-downloads");
    frame.srcdoc = model.get("page");
    Object.assign(frame.style, { width: "100%", height: `${model.get("height")}px`, border: "0" });
    const hear = (event) => {
      const chosen = event.source === frame.contentWindow && event.data && event.data.howsure;
      if (!chosen || typeof chosen.coverage !== "number") return;
      model.set("threshold", typeof chosen.threshold === "number" ? chosen.threshold : null);
      model.set("coverage", chosen.coverage);
      model.set("rule", String(chosen.rule));
      model.save_changes();
    };
    addEventListener("message", hear);
    el.append(frame);
    return () => removeEventListener("message", hear);
  },
};
"""


def deciding(report: Report, *, height: int = 900) -> Any:
    """The page of `report` as a widget for Jupyter and marimo: what is chosen there is known in
    Python.

    `.threshold` (None: defer everything), `.coverage` and `.rule` follow the page; `.policy()` is a
    `Policy` of that threshold, without a guarantee: save the one that the page offers, or run its
    command, for a promise.

    >>> from howsure.notebook import deciding                          # doctest: +SKIP
    >>> widget = deciding(hs.evaluate(preds)); widget                  # doctest: +SKIP
    >>> widget.policy().decide(new).coverage                           # doctest: +SKIP
    """
    anywidget = need("anywidget", for_="notebook.deciding", extra="notebook")
    traitlets = need("traitlets", for_="notebook.deciding", extra="notebook")
    if not isinstance(cast(object, report), Report):
        raise InputError(
            f"notebook.deciding got a {type(report).__name__}",
            need="the report of hs.evaluate is needed",
        )
    score = report.data["score"]

    def policy(self: Any) -> Policy:
        """Accept from the chosen threshold on."""
        at = float("inf") if self.threshold is None else float(self.threshold)
        return Policy(
            score, at, guarantee=Guarantee(self.rule, feasible=self.threshold is not None)
        )

    fields = {
        "_esm": SCRIPT,
        "page": traitlets.Unicode(report.to_html()).tag(sync=True),
        "height": traitlets.Int(at_least(height, 1, "height")).tag(sync=True),
        "threshold": traitlets.Float(None, allow_none=True).tag(sync=True),
        "coverage": traitlets.Float(0.0).tag(sync=True),
        "rule": traitlets.Unicode("").tag(sync=True),
        "policy": policy,
    }
    return type("Deciding", (anywidget.AnyWidget,), fields)()
