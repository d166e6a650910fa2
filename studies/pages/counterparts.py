"""Every figure and table of the five papers, and where its counterpart stands, or why there is
none.
"""

from dataclasses import dataclass

from ..tables import Table

TEN_CLASSES = "CIFAR-10 only; printed as curves without numbers"
FITTED = "calibration_resnet-14_100"
ONE_PASS = "mc_temperature_resnet-14_cifar10_60_epochs"
IMAGENET = "ImageNet images could not be had"


@dataclass(frozen=True)
class Counterpart:
    """`here` names pages and pictures of this folder, separated by commas; where it is empty,
    `note` says why.
    """

    paper: str
    item: str
    shows: str
    here: str = ""
    note: str = ""


COUNTERPARTS = (
    Counterpart("Ding 2019", "table 1", "two networks, AUROC and AUPR of finding errors, AURC", "densenet_m.md"),
    Counterpart("Ding 2019", "figure 1", "ROC, PR and RC of two networks", "densenet_m.svg"),
    Counterpart("Ding 2019", "figure 2", "the gap that ten bins hide", "complexity_hidden.svg"),
    Counterpart("Ding 2019", "figure 3", "four binnings", "complexity_binnings.svg"),
    Counterpart("Ding 2019", "figure 4", "AUPR of finding errors and AURC against size", "complexity.svg"),
    Counterpart("Ding 2019", "figure 5", "ECE, AECE, MCE, AMCE against size", "complexity.svg"),
    Counterpart(
        "Ding 2020", "table 1", "DenseNet-m: accuracy, AUROC and AUPR of finding errors, AURC", "densenet_m.md",
        "E-AURC besides",
    ),
    Counterpart("Ding 2020", "figure 1", "ROC, PR and RC of DenseNet-m", "densenet_m.svg"),
    Counterpart("Ding 2020", "figure 2", "undetectable error", "complexity_hidden.svg"),
    Counterpart("Ding 2020", "figure 3", "reliability diagrams of four binnings", "complexity_binnings.svg"),
    Counterpart("Ding 2020", "figure 4", "AUPR of finding errors and AURC against size", "complexity.svg", TEN_CLASSES),
    Counterpart("Ding 2020", "figure 5", "calibration against size", "complexity.svg", TEN_CLASSES),
    Counterpart("Ding 2020", "figure 6", "adaptive bins before and after scaling", "complexity_adaptive.svg"),
    Counterpart("Ding 2020", "figure 7", "U-Nets of several widths", "segmentation.svg, nuclei.svg",
                "other images: the heart data need a registration"),
    Counterpart("Vemuri", "figure 3.1", "reliability on training and test", f"{FITTED}.svg"),
    Counterpart("Vemuri", "figure 3.2", "the NLL overfits, the error does not",
                "regularisation_overfitting_resnet-14_100.svg"),
    Counterpart("Vemuri", "figure 4.1", "threshold diagram and the ideal", f"{FITTED}.svg"),
    Counterpart("Vemuri", "figure 4.2", "toy: one threshold diagram, three reliability diagrams",
                note="a drawing of the definition, no experiment; `hs.threshold_diagram` depends on the order only"),
    Counterpart("Vemuri", "figure 5.1", "four regularisers against error, ECE and AAC", "regularisation.svg"),
    Counterpart("Vemuri", "figure 5.2", "table of regularisers", "regularisation.md"),
    Counterpart("Vemuri", "figure 6.1", "calibrators: table and reliability diagrams",
                f"calibration.md, {FITTED}_methods.svg"),
    Counterpart("Vemuri", "figure 6.2", "threshold diagrams of all methods", f"{FITTED}.svg"),
    Counterpart("Vemuri", "figure 6.3", "choosing a calibrator on half of validation", "calibration.md"),
    Counterpart("Finlay & Oberman", "table 1", "expected odds ratio", "odds.md", f"ImageNet: top 1 only; {IMAGENET}"),
    Counterpart("Finlay & Oberman", "table 2", "Brier score", "odds.md", f"ImageNet: top 1 only; {IMAGENET}"),
    Counterpart("Finlay & Oberman", "table 3", "three bands, ImageNet", "odds.md", "first answer, not the five best"),
    Counterpart("Finlay & Oberman", "table 4", "three bands, CIFAR-10", "odds.md"),
    Counterpart("Finlay & Oberman", "table 5", "three bands, CIFAR-100", "odds.md", "a published network; no dropout"),
    Counterpart("Finlay & Oberman", "figure 1", "dropout and entropy against the loss", "odds_loss.svg",
                "of CIFAR-10; dropout in every block"),
    Counterpart("Finlay & Oberman", "figure 2", "the odds ratio as a function", "odds_ratio.svg"),
    Counterpart("Finlay & Oberman", "figure 3", "odds ratio by quantile", "odds.svg"),
    Counterpart("Finlay & Oberman", "figure 4", "U1 against the loss", "odds_loss.svg"),
    Counterpart("Finlay & Oberman", "figure 5", "sure and wrong pictures", "odds_sure_and_wrong.svg", "of CIFAR-10"),
    Counterpart("Laves", "table 1", "ECE and UCE, as trained and scaled", "mc_temperature.md", "no CIFAR-100 images"),
    Counterpart("Laves", "figure 1", "reliability, ResNet-101 on CIFAR-100", f"{ONE_PASS}_seed_0.svg",
                "CIFAR-100 images could not be had"),
    Counterpart("Laves", "figure 2", "confidence penalty against temperature", f"{ONE_PASS}_penalty_0.1_seed_0.svg"),
    Counterpart("Laves", "figure 3", "error against the entropy threshold",
                f"{ONE_PASS}_seed_0.svg, story_rejection.svg"),
    Counterpart("Laves", "figure 4", "reliability, ResNet-18 on CIFAR-10", f"{ONE_PASS}_seed_0.svg"),
    Counterpart("Laves", "figure 5", "reliability, DenseNet-169 on CIFAR-100", "mc_temperature_densenet-10_cifar10.svg",
                "CIFAR-100 images could not be had"),
)  # fmt: skip
HEADER = ["paper", "item", "what it shows", "here", "note"]


def counterparts_page() -> str:
    note = "Pictures and pages stand in this folder. Text and numbers are made anew with all other pages."
    table = Table(
        "Figures and tables of the five papers", HEADER, [row(c) for c in COUNTERPARTS], note
    )
    return table.to_markdown().replace("## ", "# ", 1)


def row(c: Counterpart) -> list[str]:
    links = ", ".join(f"[{name.rsplit('.', 1)[0]}]({name})" for name in files(c)) or "none"
    return [c.paper, c.item, c.shows, links, c.note]


def files(c: Counterpart) -> list[str]:
    return [name.strip() for name in c.here.split(",") if name.strip()]
